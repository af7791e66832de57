"""What the user asked ``trainlint check`` for, apart from what configuration files can say."""

from __future__ import annotations

from dataclasses import dataclass

from trainlint.config import Options


@dataclass(frozen=True, slots=True)
class CheckArguments:
    """``options`` are the settings that the command line overrides. Paths are as typed."""

    paths: tuple[str, ...]
    options: Options
    stdin_filename: str | None
    diff: bool
    add_ignore: bool
    baseline: str | None
    write_baseline: bool
    output_file: str | None
    statistics: bool
    exit_zero: bool
    show_settings: bool
    show_files: bool
    use_cache: bool
    jobs: int
    use_scout: bool
    verbose: bool
    quiet: bool
    colour: str

    @property
    def reads_stdin(self) -> bool:
        """Whether the source comes from standard input."""
        return self.paths == ("-",)
