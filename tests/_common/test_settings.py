"""Settings are declared once: defaults, checks, signatures and docstrings follow."""

import inspect
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone

import steelyard as sy
from steelyard._common.settings import (
    COLUMN,
    FALSE,
    FLAG,
    INFINITE,
    INFINITY,
    NONE,
    SEED,
    Check,
    Declared,
    DeclaredPart,
    accepted_by,
    check_settings,
    learned,
    listed,
    mapped,
    matching,
    number,
    part,
    required,
    resolve_part,
    setting,
    setting_of,
    whole,
    word,
)
from steelyard.classifiers.registry import classes
from steelyard.exceptions import ParameterError
from steelyard.persistence.content import PARTS
from steelyard.solvers import LBFGS
from steelyard.weighting import HierarchicalWeighting, SubsetWeighting

pytestmark = pytest.mark.plain


class Pull(DeclaredPart):
    """A pull.

    Examples
    --------
    Nothing to see.
    """

    named: bool = setting(default=False, allowed=FLAG, about="Whether.", kw_only=True)
    strength: float = setting(default=1.0, allowed=number(0.0), about="How strong.")


class Needy(DeclaredPart):
    """A part that needs something."""

    what: float = required(allowed=number(), about="What.")


class Push(Pull):
    """A push."""

    strength: float = setting(default=2.0)
    size: int = setting(default=3, allowed=whole(1), about="How large.")


class Model(Declared):
    """A model."""

    _keyword_only = True

    kind: str = setting(default="a", allowed=word("a", "b"), about="Which.")
    strength: float = setting_of(Pull, "strength", default=0.5)
    pull: object = setting(default="pull", allowed=part(Pull, {"pull": Pull}))

    weights_: list = learned("list", "The weights.")


CLASSES_AND_PARTS = [*(getattr(sy, name) for name in classes()), *PARTS.values()]


def text_of(signature):
    return str(signature).replace("'", '"')


# ----------------------------------------------------------------------- declarations


def test_settings_have_their_defaults_and_take_others():
    assert Pull().get_params() == {"named": False, "strength": 1.0}
    model = Model(kind="b")
    assert (model.kind, model.strength, model.pull) == ("b", 0.5, "pull")
    assert not hasattr(Model, "kind") and not hasattr(model, "weights_")


def test_a_subclass_overrides_a_default_and_keeps_check_and_meaning():
    assert Push().strength == 2.0 and Pull().strength == 1.0
    entry = Push._settings["strength"]
    assert entry.about == "How strong." and entry.allowed is not None
    assert list(Push._settings) == ["named", "strength", "size"]
    with pytest.raises(ParameterError, match="'strength' parameter of Push"):
        check_settings(Push(-1.0))


def test_a_setting_of_a_part_is_handed_on_with_its_check():
    entry = Model._settings["strength"]
    assert entry.default == 0.5
    assert entry.allowed is Pull._settings["strength"].allowed
    assert Pull._settings["strength"].default == 1.0


def test_parts_take_settings_by_position_and_classifiers_by_keyword_only():
    assert text_of(inspect.signature(Push)) == "(strength=2.0, size=3, *, named=False)"
    assert Push(4.0, 5).get_params() == {"named": False, "strength": 4.0, "size": 5}
    assert text_of(inspect.signature(Model)).startswith('(*, kind="a"')
    for wrong in (lambda: Push(1.0, 2, True), lambda: Model("b"), lambda: Pull(1, 2)):
        with pytest.raises(TypeError, match="too many positional arguments"):
            wrong()
    with pytest.raises(TypeError, match=r"Model\(\) .*unexpected keyword.*'size'"):
        Model(size=1)


def test_a_setting_without_a_default_must_be_given():
    assert Needy(2.0).what == 2.0
    with pytest.raises(TypeError, match=r"Needy\(\) missing .*'what'"):
        Needy()
    with pytest.raises(ParameterError, match="'what' parameter of Needy"):
        check_settings(Needy("much"))


def test_parts_of_the_package_keep_the_order_of_their_settings():
    levels = HierarchicalWeighting(1.0, 2.0, 3.0)
    assert (levels.shared, levels.by_class, levels.by_value) == (1.0, 2.0, 3.0)
    assert SubsetWeighting(7).max_stale == 7
    assert LBFGS(1e-3, 5).max_iter == 5


def test_docstrings_have_sections_of_settings_and_of_what_is_learned():
    text = inspect.getdoc(Model)
    first, _, rest = text.partition("\n\n")
    assert first == "A model."
    assert rest.index("Parameters\n----------") < rest.index("Attributes\n----------")
    assert "kind : 'a', 'b', default='a'\n    Which." in rest
    assert "weights_ : list\n    The weights." in rest
    text = inspect.getdoc(Pull)
    assert text.index("Parameters") < text.index("Examples")
    assert "Attributes" not in text


@pytest.mark.parametrize("cls", CLASSES_AND_PARTS, ids=lambda cls: cls.__name__)
def test_every_setting_is_documented_in_one_place(cls):
    text = inspect.getdoc(cls)
    assert text.count("Parameters\n----------") == bool(cls._settings)
    for name, entry in cls._settings.items():
        assert entry.name == name
        assert entry.about.endswith((".", "`.", ")")), (cls, name)
        assert f"\n{name} : " in text
    for name, entry in cls._learned.items():
        assert entry.about
        assert f"\n{name} : " in text


def test_clones_and_pickles_keep_settings():
    push = Push(4.0, named=True)
    for copy in (clone(push), pickle.loads(pickle.dumps(push))):
        assert type(copy) is Push and copy.get_params() == push.get_params()
    assert repr(Push(size=4)) == "Push(size=4)"
    model = Model(pull=Pull(3.0))
    assert clone(model).pull is not model.pull
    assert clone(model).set_params(pull__strength=9.0).pull.strength == 9.0
    assert model.pull.strength == 3.0


def test_a_class_may_write_its_own_init():
    class Named(Pull):
        def __init__(self, other=1):
            self.other = other

    assert Named(3).get_params() == {"other": 3}
    check_settings(Named("anything"))


# ----------------------------------------------------------------------------- checks


def test_a_refusal_names_setting_class_what_is_allowed_and_what_came():
    with pytest.raises(ParameterError) as error:
        check_settings(Model(kind="c"))
    assert str(error.value) == (
        "The 'kind' parameter of Model must be one of 'a', 'b'. Got 'c' instead."
    )


def test_parts_are_named_or_given_and_checked():
    words = {"pull": Pull, "push": Push}
    assert type(resolve_part("push", Pull, words, "part")) is Push
    given = Push(3.0)
    assert resolve_part(given, Pull, words, "part") is given
    with pytest.raises(ParameterError, match=r"'pull', 'push', or a Pull .*Got 3"):
        resolve_part(3, Pull, words, "part")
    with pytest.raises(ParameterError, match="'strength' parameter of Pull"):
        resolve_part(Pull(math.nan), Pull, words, "part")


def refuse_odd(value):
    if value % 2:
        raise ParameterError("odd")


@pytest.mark.parametrize(
    ("check", "accepted", "refused"),
    [
        (word("a", "b"), ["a", "b"], ["c", "", None, 1, ["a"]]),
        (whole(1), [1, np.int32(7), 10**15], [0, 1.0, True, "1", None, 10**30]),
        (number(), [0, -1.5, np.float32(2), Fraction(1, 3)], [math.inf, True, "1"]),
        (number(0.0), [0, 0.0, 5], [-1e-9, math.nan, math.inf, 10**400, 1j]),
        (number(0.0, ends="()"), [1e-300], [0, 0.0, -1]),
        (number(0.0, 1.0, "[]"), [0, 1, True + 0.0], [1.0000001]),
        (FLAG, [True, False, np.True_], [0, 1, None, "True"]),
        (NONE | whole(0), [None, 0], [-1, "None"]),
        (SEED, [None, 0, 7, np.random.RandomState(0)], [-1, 0.5, "x", True]),
        (listed(whole(0)), [[], (1, 2), np.arange(3)], ["12", 1, {0: 1}, [-1], b"1"]),
        (listed(whole(0), 2), [[1, 2]], [[1], [1, 2, 3], []]),
        (listed(whole(0), at_least=1), [[1]], [[]]),
        (mapped(word("a"), FLAG), [{}, {"a": True}], [{"b": True}, {"a": 1}, ["a"]]),
        (matching("cuda:[0-9]", "x"), ["cuda:1"], ["cuda", "cuda:1\n", 1, None]),
        (NONE | FALSE, [None, False, np.False_], [0, True, np.True_, ""]),
        (INFINITE, [math.inf, -math.inf, np.float32(math.inf)], [1e308, None, "inf"]),
        (INFINITY, [math.inf, np.float64(math.inf)], [-math.inf, 0.0, True]),
        (COLUMN, ["a", 0, True, np.int8(1), np.True_], [0.5, None, b"a", [0]]),
        (part(Pull, {"pull": Pull}), ["pull", Pull(), Push()], ["push", Pull, Model()]),
        (accepted_by(refuse_odd, "even"), [2, 0], [1, 3]),
    ],
    ids=lambda value: value.text if isinstance(value, Check) else "",
)
def test_checks_accept_what_they_say(check, accepted, refused):
    assert all(check.accepts(value) for value in accepted)
    assert not any(check.accepts(value) for value in refused)


def test_checks_can_be_joined_and_called_by_other_words():
    both = NONE | word("a") | whole(2)
    assert both.text == "None or 'a' or a whole number of at least 2"
    assert both.words == ("a",)
    assert both.called("nothing much").text == "nothing much"
    assert both.called("nothing much").accepts("a")


STRANGE = [
    None,
    True,
    -1,
    0.5,
    10**400,
    math.nan,
    -math.inf,
    np.float32(math.inf),
    1j,
    "",
    "no such word",
    b"bytes",
    object(),
    float,
    [],
    [None],
    [[1], [2, 3]],
    [([0], [[1], [2, 3]])],
    ("a", "b"),
    {},
    {None: 1},
    {"a": "b"},
    {0: [1, 2, 3]},
    {1, 2},
    np.array([1.0, 2.0]),
    np.array([["a"]]),
    np.array(3),
    lambda value: value,
]


@pytest.mark.parametrize("cls", CLASSES_AND_PARTS, ids=lambda cls: cls.__name__)
def test_no_value_is_too_strange_to_be_checked(cls):
    # A setting without a default may be left to the class to check.
    for entry in cls._settings.values():
        if entry.allowed is None:
            assert entry.default is inspect.Parameter.empty
            continue
        for value in STRANGE:
            assert entry.allowed.accepts(value) in (True, False), (entry.name, value)
