"""The commands, arguments and options as the command line itself describes them."""

import re
from typing import Any

import typer

from nfgnn.cli import app

RANGE_OR_DEFAULT = re.compile(r"  \[([^][]*)\]$")


def commands() -> str:
    """Return one section per command, with its usage, examples, arguments and options."""
    program = typer.main.get_command(app)
    context = typer.Context(program, info_name="nfgnn")
    sections = []
    for name, command in program.commands.items():
        inner = typer.Context(command, info_name=name, parent=context)
        sections.append(_section(name, command, inner))
    return "\n\n".join(sections)


def _section(name: str, command: Any, context: typer.Context) -> str:
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f"## nfgnn {name}", command.help, f"```text\nnfgnn {name} {usage}\n```"]
    if command.epilog:
        lines += ["```bash", *_examples(command.epilog), "```"]
    groups: dict[str, list[str]] = {}
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is None or parameter.name == "help":
            continue
        group = "Arguments" if parameter.param_type_name == "argument" else "Options"
        group = parameter.rich_help_panel or group
        groups.setdefault(group, []).append(_entry(*record))
    for group, entries in groups.items():
        lines += ["", f"**{group}**", "", "\n\n".join(entries)]
    return "\n".join(["", *lines]).replace("\n```text", "\n\n```text")


def _examples(epilog: str) -> list[str]:
    """Return the commands of an epilog such as ``Example:  nfgnn …   ·   nfgnn …``."""
    _, _, text = epilog.partition(":")
    return [example.strip() for example in text.split("·")]


def _entry(names: str, text: str) -> str:
    """Return a parameter as an entry of a definition list."""
    match = RANGE_OR_DEFAULT.search(text)
    if match:
        note = match[1].replace("<=", " ≤ ").replace(">=", " ≥ ")
        text = f"{text[: match.start()]} *({note})*"
    return f"`{names}`\n: {text}".replace("$", r"\$")
