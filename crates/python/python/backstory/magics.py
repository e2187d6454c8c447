"""The magics ``%backstory`` and ``%%backstory``, loaded by ``%load_ext backstory``."""

from __future__ import annotations

import shlex
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class

from . import _marks, _program
from .errors import BackstoryError
from .store import Store

_USAGE = """%backstory of PATH        show where a file comes from
%backstory uses PATH      show the files that came from a file
%backstory runs           list the recorded runs
%backstory run [RUN]      show one run
%backstory files [RUN]    list the files of a run
%backstory diff A B       compare two runs or versions
%backstory status PATH…   check whether files are current
%backstory …              run any other command of the command line, and print its text"""


@magics_class
class BackstoryMagics(Magics):
    """Magics that answer questions and record cells."""

    @line_magic("backstory")  # type: ignore[arg-type]
    def question(self, line: str) -> Any:
        """Answers a question: ``%backstory of fig.png``."""
        words = shlex.split(line)
        if not words:
            print(_USAGE)
            return None
        try:
            return _answer(words[0], words[1:])
        except BackstoryError as error:
            raise UsageError(str(error)) from error

    @cell_magic("backstory")  # type: ignore[arg-type]
    def cell(self, line: str, cell: str) -> Any:
        """Records a cell: ``%%backstory [NAME]``.

        The cell runs in a recorded interpreter, with the variables that it names. The variables
        that it assigned or changed are copied back. In a recorded kernel the cell runs here, as an
        activity.
        """
        from . import _blocks

        shell: Any = self.shell
        name = " ".join(shlex.split(line)) or None
        if _marks.is_recorded():
            _marks.begin([name or "cell", cell])
            try:
                return shell.run_cell(cell, store_history=False).result
            finally:
                _marks.end()
        source = shell.input_transformer_manager.transform_cell(cell)
        try:
            block = _blocks.of_source(source, f"<cell {shell.execution_count}>")
            made, run = _blocks.in_child(block, shell.user_ns, name or "cell", None)
        except BackstoryError as error:
            raise UsageError(str(error)) from error
        shell.push(made)
        return run


def _answer(command: str, words: list[str]) -> Any:
    plain = not any(word.startswith("-") for word in words)
    one = words[0] if len(words) == 1 else None
    if plain and command == "of" and one is not None:
        return Store().of(one)
    if plain and command == "uses" and one is not None:
        return Store().uses(one)
    if plain and command == "runs" and not words:
        return Store().runs()
    if plain and command in ("run", "show") and len(words) <= 1:
        return Store().run(one)
    if plain and command == "files" and len(words) <= 1:
        return Store().run(one).files()
    if plain and command == "processes" and len(words) <= 1:
        return Store().run(one).processes()
    if plain and command == "diff" and len(words) == 2:
        return Store().diff(words[0], words[1])
    if plain and command == "status" and words:
        return Store().status(*words)
    # `status` and `diff` print a result with exit status 1, too.
    print(_program.ask([command, *words], accepted=(0, 1)), end="")
    return None
