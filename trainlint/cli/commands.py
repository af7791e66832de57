"""Groups of commands that help with a mistyped name."""

from __future__ import annotations

import click

from trainlint.cli.faults import UsageFault


class CommandGroup(click.Group):
    """Answers a command that it does not have with the one that may be meant."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of that name.

        Raises:
            UsageFault: there is none.
        """
        name = args[0]
        if name in self.list_commands(ctx) or name.startswith("-"):
            return super().resolve_command(ctx, args)
        raise UsageFault(f"no such command: {name!r}{self.meant_instead(ctx, name)}")

    def meant_instead(self, ctx: click.Context, name: str) -> str:
        """What somebody may have wanted who typed a command that does not exist."""
        from trainlint.config.errors import did_you_mean

        commands = self.list_commands(ctx)
        return did_you_mean(name, commands) or f"; the commands are {', '.join(commands)}"
