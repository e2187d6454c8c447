"""Hides private paths: they are left out, or replaced by keyed hashes.

A keyed hash (HMAC-SHA-256) is the same for all machines with the same key, so equal files still
meet in the lake. Without the key, it is found by no trial. A text that mentions a private name, as
a command line does, is replaced as a whole.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import MisuseError

#: Characters between the words of a command line.
SEPARATORS = re.compile(r"[\s'\"`=:;,|&<>(){}$@]+")
#: A word of a line that `backstory query` quoted for a shell: with escapes, or without.
QUOTED = re.compile(r"\$'((?:[^'\\]|\\.)*)'|((?:'[^']*'|\\'|[^ '])+)")
#: An escape in such a word.
ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
#: Names of one path component that tell nothing.
PLAIN = {"", ".", ".."}


@dataclass
class Config:
    """The rules about what may leave this machine."""

    owner: str | None = None
    sensitivity: str | None = None
    omitted: list[str] = field(default_factory=list)
    hashed: list[str] = field(default_factory=list)
    key: bytes = b""

    @classmethod
    def read(cls, path: str | None) -> Config:
        """Reads a TOML file. `None`: nothing is private."""
        if path is None:
            return cls()
        try:
            found = tomllib.loads(Path(path).read_text())
        except OSError as error:
            raise MisuseError(f"cannot read {path}: {error.strerror}") from error
        except tomllib.TOMLDecodeError as error:
            raise MisuseError(f"{path} is not TOML: {error}") from error
        private = found.pop("private", {})
        config = cls(
            owner=_taken(found, "owner", str, path),
            sensitivity=_taken(found, "sensitivity", str, path),
            omitted=_taken(private, "omit", list, path) or [],
            hashed=_taken(private, "hash", list, path) or [],
        )
        key_file = _taken(private, "key_file", str, path)
        unknown = [*found, *(f"private.{name}" for name in private)]
        if unknown:
            raise MisuseError(f"{path}: unknown: {', '.join(unknown)}")
        if config.hashed and not key_file:
            raise MisuseError(f"{path}: private.hash needs private.key_file")
        if key_file:
            try:
                config.key = Path(key_file).read_bytes().strip()
            except OSError as error:
                raise MisuseError(f"cannot read the key {key_file}: {error.strerror}") from error
            if len(config.key) < 16:
                raise MisuseError(f"the key in {key_file} has less than 16 bytes")
        return config


def _taken(table: Any, name: str, kind: type, path: str) -> Any:
    if not isinstance(table, dict):
        raise MisuseError(f"{path}: private is no table")
    value = table.pop(name, None)
    texts = isinstance(value, list) and all(isinstance(one, str) for one in value)
    if value is not None and not (isinstance(value, kind) and (texts or kind is not list)):
        raise MisuseError(f"{path}: {name} has the wrong type")
    return value


def shell_words(line: str, errors: str = "replace") -> list[str]:
    """The words of a line that `backstory query` quoted for a shell.

    `errors`: what becomes of bytes that are not UTF-8, as `bytes.decode` has it.
    """
    return [_plain(word, errors) for word in QUOTED.finditer(line)]


def _plain(word: re.Match[str], errors: str) -> str:
    if word[1] is None:
        # Of an escaped quote, only the quote counts.
        return re.sub(r"'([^']*)'|\\(')", lambda part: part[1] or part[2] or "", word[2])
    meant = {b"n": b"\n", b"t": b"\t"}
    text = ESCAPE.sub(
        lambda one: bytes([int(one[1], 8)]) if len(one[1]) == 3 else meant.get(one[1], one[1]),
        word[1].encode(),
    )
    return text.decode(errors=errors)


def pattern(glob: str) -> str:
    """A regular expression for a glob: `**` crosses directories, `*` and `?` do not."""
    parts = re.split(r"(\*\*/|/\*\*$|\*\*|\*|\?)", glob)
    meant = {"**/": "(?:.*/)?", "/**": "(?:/.*)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(meant.get(part, re.escape(part)) for part in parts)


class Privacy:
    """Decides about paths, and hides names in texts."""

    def __init__(self, config: Config) -> None:
        self._key = config.key
        self._omitted = _joined(config.omitted)
        self._hashed = _joined(config.hashed)
        # Each pattern, with the last directory that it names.
        self._patterns = [
            (re.compile(pattern(glob), re.DOTALL), _last_directory(glob))
            for glob in [*config.omitted, *config.hashed]
        ]

    @property
    def is_needed(self) -> bool:
        """True if any path is private."""
        return bool(self._omitted or self._hashed)

    def omits(self, path: str) -> bool:
        """True for a path whose rows stay at home."""
        return bool(self._omitted and self._omitted.fullmatch(_place(path)))

    def hashes(self, path: str) -> bool:
        """True for a path that leaves under another name."""
        return bool(self._hashed and self._hashed.fullmatch(_place(path)))

    def pseudonym(self, text: str) -> str:
        """The keyed hash of a text. Without a key, all texts are one."""
        if not self._key:
            return "private"
        code = hmac.new(self._key, text.encode(errors="surrogateescape"), hashlib.sha256)
        return f"private:{code.hexdigest()[:40]}"

    def names(self, paths: Iterable[str]) -> set[str]:
        """The words by which texts can mention private paths."""
        words = set()
        for path in map(_place, paths):
            parts = path.split("/")
            words.update((path, parts[-1]))
            for known, directory in self._patterns:
                if known.fullmatch(path):
                    # The names in the pattern itself are no secret.
                    here = [at for at, part in enumerate(parts) if part == directory]
                    words.update(parts[here[-1] + 1 if here else 0 :])
        return words - PLAIN

    def hidden(self, text: str | None, words: set[str]) -> str | None:
        """The text, or its hash if it mentions one of the words."""
        if text is None or not self._mentions(text, words):
            return text
        return self.pseudonym(text)

    def hidden_list(self, text: str | None, words: set[str]) -> str | None:
        """The same for each text of a JSON array."""
        if text is None or not (words or self.is_needed):
            return text
        hidden = [self.hidden(one, words) for one in json.loads(text)]
        return json.dumps(hidden, ensure_ascii=False, separators=(",", ":"))

    def hidden_names(self, line: str, all_of_them: bool) -> str:
        """The words of a line without private names: with their hashes, or without them."""
        kept = []
        for word in QUOTED.finditer(line):
            name = _plain(word, "replace")
            if self.omits(name):
                continue
            hide = all_of_them or self.hashes(name)
            kept.append(self.pseudonym(name) if hide else word[0])
        return " ".join(kept)

    def _mentions(self, text: str, words: set[str]) -> bool:
        found = {text, *SEPARATORS.split(text)}
        if any(self.omits(token) or self.hashes(token) for token in found):
            return True
        found.update(part for token in list(found) for part in token.split("/"))
        if not words.isdisjoint(found):
            return True
        return any(word in text for word in words if SEPARATORS.search(word))


def _place(path: str) -> str:
    """The path of a UNIX socket, else the name itself."""
    if not path.startswith("unix:"):
        return path
    return path.removeprefix("unix:").removesuffix(" (reply)")


def _last_directory(glob: str) -> str | None:
    literal = [part for part in glob.split("/")[:-1] if part and not re.search(r"[*?]", part)]
    return literal[-1] if literal else None


def _joined(globs: list[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(map(pattern, globs)), re.DOTALL) if globs else None
