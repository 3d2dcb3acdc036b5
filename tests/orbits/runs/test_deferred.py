"""Functions that are imported when they are first called."""

import pickle
import sys

from orbits.runs.deferred import deferred, load


def test_a_function_is_imported_when_it_is_first_called(tmp_path, monkeypatch):
    (tmp_path / "heavy_module.py").write_text("def double(x, by=2):\n    return by * x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    double = pickle.loads(pickle.dumps(deferred("heavy_module:double")))
    assert "heavy_module" not in sys.modules
    assert (double(3), double(3, by=3)) == (6, 9)
    assert load("heavy_module:double") is sys.modules.pop("heavy_module").double


def test_in_a_class_it_is_a_method(tmp_path, monkeypatch):
    (tmp_path / "methods.py").write_text(
        "def name(self, end):\n    return type(self).__name__ + end\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))

    class Named:
        name = deferred("methods:name")
        root = staticmethod(deferred("math:sqrt"))

    assert Named().name("!") == "Named!"
    assert Named.root(4) == Named().root(4) == 2
