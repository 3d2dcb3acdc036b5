"""``python -m worldmodel fit|validate|test|predict|finetune|attention-maps|probe``."""

import sys

from orbits.command_line import OneLineParser, one_line_errors

HELP = """usage: python -m worldmodel COMMAND [-c CONFIG.yaml] [--key.subkey VALUE ...]

commands:
  fit        pre-train on next-token prediction, of orbits (worldmodel/configs/pretrain.yaml) or
             of text (configs/text.yaml; lm_124m.yaml and others on token shards); with StateTask,
             on the true state
  finetune   train a force head, from --pretrained CKPT or from scratch (configs/force.yaml)
  validate   evaluate a checkpoint on the validation sequences
  test       evaluate a checkpoint on the held-out test sequences
  attention-maps CKPT [--layer N] [--sequence N] [--text TEXT] [--out PNG]
             draw the weights of every head of a block on one held-out orbit, or on a text
  predict    write a force model's predictions to a file that symreg reads
  probe CKPT [CKPT ...] [--probes all|NAME,...] [--out DIR]
             ask what checkpoints know, beside controls and ceilings: lines, figures, report

examples:
  python -m worldmodel fit -c worldmodel/configs/pretrain.yaml --model.attention=lssar
  python -m worldmodel fit -c worldmodel/configs/text.yaml --data.path my-texts
  python -m worldmodel finetune -c worldmodel/configs/force.yaml --pretrained CKPT
  python -m worldmodel predict -c worldmodel/configs/force.yaml --ckpt_path CKPT
  python -m worldmodel probe runs/pretrain/version_0/checkpoints/last.ckpt --probes rollout,linear

`python -m worldmodel COMMAND --help` lists the keys of the trainer, `COMMAND --model.help CLASS`
those of a task (NextTokenTask, ForceTask, StateTask, TextTask), `COMMAND --data.help CLASS` those
of its data (OrbitData, TextData, ShardData). `python -m worldmodel.shards` makes token shards of a
corpus, `python -m worldmodel.bpe` a tokeniser."""


def main() -> None:
    """Answer plain help at once; everything else loads Lightning."""
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(HELP)
        return
    if sys.argv[1] in COMMANDS:
        COMMANDS[sys.argv[1]](sys.argv[2:])
        return
    with one_line_errors(resumes=False):  # of the import, which takes seconds
        from worldmodel.cli import main as run

        run()


def _attention_maps(arguments: list[str]) -> None:
    parser = OneLineParser(prog="python -m worldmodel attention-maps")
    parser.add_argument("checkpoint")
    parser.add_argument("--layer", type=int, default=-1, help="which block (default: the last)")
    parser.add_argument("--sequence", type=int, help="orbits: which test sequence (default: 0)")
    parser.add_argument("--text", help="text: what to draw (default: the LSSAR paper's sentence)")
    parser.add_argument("--out", default="attention-maps.png")
    options = parser.parse_args(arguments)
    from worldmodel.attention_maps import attention_maps

    with one_line_errors(resumes=False):
        print(attention_maps(**vars(options)))


def _probe(arguments: list[str]) -> None:
    from worldmodel.probes import names

    parser = OneLineParser(
        prog="python -m worldmodel probe", description="Ask what checkpoints know."
    )
    parser.add_argument(
        "checkpoints", nargs="+", metavar="CKPT", help="a file, or LABEL:SEED=PATH to name it"
    )
    parser.add_argument("--probes", default="all", help=f"all, or some of {', '.join(names())}")
    parser.add_argument("--out", default="runs/probe", help="results folder (runs/probe)")
    parser.add_argument("--law", help="ask in a world of this law (default: the checkpoint's own)")
    parser.add_argument("--n-sequences", type=int, help="held-out sequences (500)")
    parser.add_argument("--seeds", help="seeds of what is trained, one or three and more (0,1,2)")
    parser.add_argument("--steps", type=int, help="fine-tuning steps (default: each probe's own)")
    parser.add_argument("--labels", type=int, help="labelled sequences to train on (1000)")
    parser.add_argument("--datasets", type=int, help="white-noise datasets (100)")
    parser.add_argument("--white-noise", help="their targets: projection (default) or random")
    parser.add_argument(
        "--no-scratch", action="store_true", help="no force heads trained from scratch"
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="take a folder of another run: shared answers are kept, the report is of this one",
    )
    options = parser.parse_args(arguments)
    given = ("law", "n_sequences", "steps", "labels", "datasets", "white_noise")
    changes = {name: value for name in given if (value := getattr(options, name)) is not None}
    if options.no_scratch:
        changes["scratch"] = False
    if options.seeds is not None:
        if not all(item.isdecimal() for item in options.seeds.split(",")):
            parser.error(f"--seeds takes whole numbers separated by commas, got {options.seeds!r}")
        changes["seeds"] = tuple(int(item) for item in options.seeds.split(","))
    chosen = [] if options.probes == "all" else options.probes.split(",")
    from worldmodel.allocator import keep_freed_memory
    from worldmodel.probing import Settings, probe

    keep_freed_memory()
    with one_line_errors(FloatingPointError):  # a training that diverged
        page = probe(
            options.checkpoints, chosen, options.out, Settings(**changes), resume=options.resume
        )
    print(f"report: {page}")


COMMANDS = {"attention-maps": _attention_maps, "probe": _probe}


if __name__ == "__main__":
    main()
