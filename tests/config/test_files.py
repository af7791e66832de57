"""Configuration files: which one holds, what it may say, and what is said when it is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainlint.catalogue import RuleFacts
from trainlint.config import DEFAULT_EXCLUDES, ConfigError, Options, Settings, SettingsResolver
from trainlint.finding import Severity

SettingsOf = Callable[..., Settings]


@pytest.fixture
def settings_of(tmp_path: Path, rules: tuple[RuleFacts, ...]) -> SettingsOf:
    """The settings for a folder below ``tmp_path``."""

    def find(folder: str = "", command_line: Options | None = None) -> Settings:
        options = command_line or Options("the command line")
        resolver = SettingsResolver(options, str(tmp_path), lambda _: rules)
        return resolver.for_folder(str(tmp_path / folder) if folder else str(tmp_path))

    return find


def test_without_a_file(settings_of: SettingsOf, tmp_path: Path) -> None:
    settings = settings_of()
    assert settings.fail_on is Severity.WARNING
    assert settings.output_format == "full"
    assert not settings.force_exclude
    assert settings.exclude[0].patterns == DEFAULT_EXCLUDES
    assert settings.cache_dir == str(tmp_path / ".trainlint_cache")


def test_every_key(settings_of: SettingsOf, tmp_path: Path) -> None:
    (tmp_path / "trainlint.toml").write_text(
        """
        select = ["ALL"]
        ignore = ["TLC"]
        extend-select = ["slow-save"]
        exclude = ["vendored"]
        extend-exclude = ["generated/*.py"]
        force-exclude = true
        fail-on = "error"
        cache-dir = ".cache/trainlint"
        output-format = "concise"
        fix = true
        unsafe-fixes = true
        [per-file-ignores]
        "tests/*" = ["TLG"]
        """
    )
    settings = settings_of()
    assert settings.rule_set.codes == ("TLC002", "TLG001", "TLG002", "TLG101")
    assert settings.rule_set_of(str(tmp_path / "tests/a.py")).codes == ("TLC002",)
    assert [group.patterns for group in settings.exclude] == [("vendored",), ("generated/*.py",)]
    assert settings.force_exclude
    assert settings.fix
    assert settings.unsafe_fixes
    assert settings.fail_on is Severity.ERROR
    assert settings.cache_dir == str(tmp_path / ".cache/trainlint")
    assert settings.output_format == "concise"


def test_the_nearest_file_holds_alone(settings_of: SettingsOf, tmp_path: Path) -> None:
    (tmp_path / "inner/deep").mkdir(parents=True)
    (tmp_path / "trainlint.toml").write_text('select = ["TLG"]\nfail-on = "info"\n')
    (tmp_path / "inner/pyproject.toml").write_text('[tool.trainlint]\nselect = ["TLC"]\n')
    assert settings_of("inner/deep").rule_set.codes == ("TLC001", "TLC002")
    assert settings_of("inner/deep").fail_on is Severity.WARNING
    assert settings_of().rule_set.codes == ("TLG001", "TLG002")


def test_a_project_file_about_other_tools_is_passed_over(
    settings_of: SettingsOf, tmp_path: Path
) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "trainlint.toml").write_text('select = ["TLG001"]\n')
    (tmp_path / "inner/pyproject.toml").write_text("[tool.ruff]\nline-length = 100\n")
    assert settings_of("inner").rule_set.codes == ("TLG001",)


def test_our_own_file_comes_before_the_project_file(
    settings_of: SettingsOf, tmp_path: Path
) -> None:
    (tmp_path / "trainlint.toml").write_text('select = ["TLG001"]\n')
    (tmp_path / "pyproject.toml").write_text('[tool.trainlint]\nselect = ["TLC"]\n')
    assert settings_of().rule_set.codes == ("TLG001",)


def test_the_command_line_overrides_the_file(settings_of: SettingsOf, tmp_path: Path) -> None:
    (tmp_path / "trainlint.toml").write_text(
        """
        fail-on = "error"
        exclude = ["a"]
        force-exclude = true
        [per-file-ignores]
        "a.py" = ["ALL"]
        """
    )
    settings = settings_of(
        command_line=Options(
            "the command line",
            fail_on=Severity.INFO,
            exclude=("b",),
            force_exclude=False,
            cache_dir="elsewhere",
            per_file_ignores=(("b.py", ("ALL",)),),
        )
    )
    assert settings.fail_on is Severity.INFO
    assert [group.patterns for group in settings.exclude] == [("b",)]
    assert not settings.force_exclude
    assert settings.cache_dir == str(tmp_path / "elsewhere")
    assert settings.rule_set_of(str(tmp_path / "a.py")).codes
    assert not settings.rule_set_of(str(tmp_path / "b.py")).codes


@pytest.mark.parametrize(
    ("pattern", "path", "ignored"),
    [
        ("tests", "tests/unit/test_a.py", True),
        ("tests/*", "tests/test_a.py", True),
        ("test_*.py", "deep/down/test_a.py", True),
        ("tests/**/*.py", "tests/a/b/c.py", True),
        ("/a.py", "inner/a.py", False),
        ("tests/*", "src/tests.py", False),
    ],
)
def test_per_file_ignores_patterns(
    settings_of: SettingsOf, tmp_path: Path, pattern: str, path: str, ignored: bool
) -> None:
    (tmp_path / "trainlint.toml").write_text(f'[per-file-ignores]\n"{pattern}" = ["ALL"]\n')
    assert (not settings_of().rule_set_of(str(tmp_path / path)).codes) is ignored


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('selct = ["ALL"]', "unknown key 'selct'; did you mean 'select'?"),
        ('extend_select = ["ALL"]', "unknown key 'extend_select'; did you mean 'extend-select'?"),
        ("zzz = 1", "unknown key 'zzz'"),
        ('select = "ALL"', "'select' must be a list of strings, not 'ALL'"),
        ("select = [1]", "'select' must be a list of strings, not [1]"),
        ('force-exclude = "yes"', "'force-exclude' must be true or false, not 'yes'"),
        ('fail-on = "fatal"', "'fail-on' must be one of error, warning, info, not 'fatal'"),
        ("fail-on = []", "'fail-on' must be one of error, warning, info, not []"),
        ('output-format = "xml"', "'output-format' must be one of full, concise, json"),
        ("cache-dir = 1", "'cache-dir' must be a string, not 1"),
        ('per-file-ignores = ["a"]', "'per-file-ignores' must be a table of path patterns"),
        ("select = ", "not valid TOML: "),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(
    settings_of: SettingsOf, tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "trainlint.toml").write_text(content + "\n")
    with pytest.raises(ConfigError) as raised:
        settings_of()
    assert str(raised.value).startswith(f"trainlint.toml: {message}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("key", ["select = ['wat']", "[per-file-ignores]\n'a.py' = ['wat']"])
def test_an_unknown_rule_names_the_file(settings_of: SettingsOf, tmp_path: Path, key: str) -> None:
    (tmp_path / "pyproject.toml").write_text(
        "[tool.trainlint]\n" + key.replace("[per", "[tool.trainlint.per") + "\n"
    )
    with pytest.raises(ConfigError, match=r"^pyproject.toml: unknown rule 'wat'"):
        settings_of().rule_set_of(str(tmp_path / "a.py"))


def test_a_broken_project_file_that_is_not_about_us_is_no_error(
    settings_of: SettingsOf, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text("[broken\n")
    assert settings_of().rule_set.codes


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
_KEYS = st.sampled_from(
    ["select", "per-file-ignores", "fail-on", "force-exclude", "output-format", "cache-dir"]
) | st.text(max_size=8)


@given(st.dictionaries(_KEYS, _VALUES, max_size=3))
def test_any_table_is_read_or_refused_in_one_line(table: dict[str, object]) -> None:
    message = ""
    try:
        Options.from_table(table, "a file")
    except ConfigError as error:
        message = str(error)
    assert "\n" not in message
