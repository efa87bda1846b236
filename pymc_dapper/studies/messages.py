"""Messages of exceptions without values: the kind, and a text without data."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FrameType, FunctionType, TracebackType

from pymc_dapper.studies.fingerprint import is_installed

LEFT_OUT = "…"

_WORD = re.compile(r"[^\W\d]\w*")
_TOKEN = re.compile(rf"{_WORD.pattern}|[-+]?\.?\d[\w.+]*")


class StudyError(Exception):
    """Something that doesn't fit, found by the study itself: the text has no values in it."""


def error_message(where: str, error: BaseException, names: Iterable[str] = ()) -> str:
    """Describe an error without values: an exception's text may contain confidential ones.

    Kept are words of the function that raised the exception; if a package raised it, words of the
    package's modules on the way; and the given names. All other words and all numbers are replaced,
    and the line of the user's own code is added. Results can contain arrays and files.
    """
    text, places = str(error), list(_places(error.__traceback__))
    if not isinstance(error, StudyError | MemoryError):  # their texts have shapes at most
        known = {*_words(*names), *_words_of(error)}
        for place in reversed(places):
            if place is not places[-1] and not is_installed(place.tb_frame.f_code):
                break
            known.update(_words_at(place))
        shown = _TOKEN.sub(lambda x: x[0] if x[0] in known else LEFT_OUT, text)
        if shown != text and places:
            own = [place for place in places if not is_installed(place.tb_frame.f_code)]
            place = (own or places)[-1]
            file = Path(place.tb_frame.f_code.co_filename).name
            shown += f" (line {place.tb_lineno} of {file}; values are left out)"
        text = shown
    kind = "" if isinstance(error, StudyError) else type(error).__name__
    message = ": ".join(part for part in (where, kind, text) if part)
    return message.encode(errors="backslashreplace").decode()


def _places(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _words(*texts: str) -> Iterator[str]:
    for text in texts:
        yield from _WORD.findall(text)


def _words_of(error: BaseException) -> Iterator[str]:
    """Yield words that occur in every text of a kind of error."""
    yield from _words(type(error).__doc__ or "")
    if isinstance(error, OSError) and error.errno is not None:
        yield from _words(os.strerror(error.errno))
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        yield str(error.code)


def _words_at(place: TracebackType) -> Iterator[str]:
    """Yield the words of the statement that raised an error."""
    if is_installed(place.tb_frame.f_code):
        yield from _words_of_module(place.tb_frame)
    else:
        yield from _words_of_code(place.tb_frame.f_code)


def _words_of_module(frame: FrameType) -> Iterator[str]:
    """Yield the words in the source of a module with a function on the call stack."""
    yield from _words_of_code(frame.f_code)
    for thing in list(frame.f_globals.values()):
        for member in vars(thing).values() if isinstance(thing, type) else (thing,):
            if isinstance(member, FunctionType) and member.__globals__ is frame.f_globals:
                yield from _words_of_code(member.__code__)


def _words_of_code(code: CodeType) -> Iterator[str]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _words_of_code(constant)
        else:
            yield from _words(*_texts(constant))


def _texts(constant: object) -> Iterator[str]:
    parts = constant if isinstance(constant, tuple | frozenset) else (constant,)
    yield from (part for part in parts if isinstance(part, str))
