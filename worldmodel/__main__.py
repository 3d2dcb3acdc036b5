"""``python -m worldmodel fit|validate|test|predict|finetune``."""

import sys

HELP = """usage: python -m worldmodel COMMAND [-c CONFIG.yaml] [--key.subkey VALUE ...]

commands:
  fit        pre-train on next-token prediction (worldmodel/configs/pretrain.yaml)
  finetune   train a force head, from --pretrained CKPT or from scratch (configs/force.yaml)
  validate   evaluate a checkpoint on the validation sequences
  test       evaluate a checkpoint on the held-out test sequences
  predict    write a force model's predictions to a file that symreg reads

examples:
  python -m worldmodel fit -c worldmodel/configs/pretrain.yaml --model.attention=lssar
  python -m worldmodel finetune -c worldmodel/configs/force.yaml --pretrained CKPT
  python -m worldmodel predict -c worldmodel/configs/force.yaml --ckpt_path CKPT

`python -m worldmodel COMMAND --help` lists every key."""


def main() -> None:
    """Answer plain help at once; everything else loads Lightning."""
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(HELP)
        return
    from worldmodel.cli import main as run

    run()


if __name__ == "__main__":
    main()
