"""What the checker accepts, and what it must not."""

import pytest

from sphinxext.checker import CONFIG


def agree(want, got):
    checker = CONFIG.CheckerKlass(CONFIG)
    return checker.check_output(f"{want}\n", f"{got}\n", CONFIG.optionflags)


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ("1.0", "1.0000001"),
        ("nan", "nan"),
        ("[nan, 1.0]", "[nan, 1.0000001]"),
        ("(1.0, 'a')", "(1.0000001, 'a')"),
        ("{'a': 1.0}", "{'a': 1.0000001}"),
        ("np.float32(1.5)", "np.float32(1.5000001)"),
        ("[0.1 0.2]", "[0.1000001 0.2      ]"),
        ("[[0.1 2. ]\n [3.  4. ]]", "[[0.1000001 2. ]\n [3.  4. ]]"),
        ("Array([1., 2.], dtype=float32)", "Array([1.0000001, 2.], dtype=float32)"),
        ("DeviceArray(1., dtype=bfloat16)", "DeviceArray(1.00001, dtype=bfloat16)"),
        (
            "Array(1., dtype=float32, weak_type=True)",
            "Array(1.0000001, dtype=float32, weak_type=True)",
        ),
        (
            "[Array(1., dtype=float32), Array([1.], dtype=float32)]",
            "[Array(1.0000001, dtype=float32), Array([1.], dtype=float32)]",
        ),
        ("<function f at 0x...>", "<function f at 0x7f0000000000>"),
        ("0.1  # may vary", "0.7"),
    ],
)
def test_accepts(want, got):
    assert agree(want, got)


@pytest.mark.parametrize(
    ("want", "got"),
    [
        pytest.param("1.0", "1.01", id="another number"),
        pytest.param("1", "1.0", id="another type"),
        pytest.param("True", "1", id="a flag is no number"),
        pytest.param("10000001", "10000002", id="integers are exact"),
        pytest.param("[]", "[1.0]", id="an element too many"),
        pytest.param("[1, 2]", "(1, 2)", id="a list is no tuple"),
        pytest.param("[1, 2]", "[1 2]", id="a list is no array"),
        pytest.param("'a'", "'b'", id="another string"),
        pytest.param("{'a': 1.0}", "{'b': 1.0}", id="another key"),
        pytest.param("# nothing", "5", id="a comment is no output"),
        pytest.param("42", "<function f at 0x7f0000000000>", id="an address"),
        pytest.param("Point(x=1, y=2)", "Size(w=1, h=2)", id="other names"),
        pytest.param(
            "Array([1., 1.], dtype=float32)", "Array(1., dtype=float32)", id="another shape"
        ),
        pytest.param("Array(1., dtype=float32)", "Array(1., dtype=bfloat16)", id="another dtype"),
        pytest.param(
            "Array(1., dtype=float32)", "DeviceArray(1., dtype=float32)", id="another class"
        ),
        pytest.param(
            "Array(1., dtype=float32)",
            "Array(1., dtype=float32, weak_type=True)",
            id="another weak type",
        ),
        pytest.param(
            "Array([10000001], dtype=int32)",
            "Array([10000002], dtype=int32)",
            id="integer arrays are exact",
        ),
    ],
)
def test_refuses(want, got):
    assert not agree(want, got)
    assert not agree(got, want)
