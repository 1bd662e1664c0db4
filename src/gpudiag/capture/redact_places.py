"""Places in which Nsight Systems keeps the machine, its user and the environment in an SQLite export."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

REMOVED = "(removed)"

OPTION_TABLES = ("META_DATA_CAPTURE", "META_DATA_EXPORT", "EXPORT_META_DATA")
SYSTEM_TABLE = "TARGET_INFO_SYSTEM_ENV"
_PERSONAL_OPTION = re.compile(
    r"ENVIRONMENT|ARGUMENT|WORKING_DIR|USER|DISPLAY_NAME|HOST|PATH|_FILE$|COMMAND$|UUID|SESSION_ID|SCRIPT"
)
_HARMLESS_OPTION = re.compile(
    r"EXPORT_(PRODUCT|SCHEMA)_\w+|EXPORT_(PLATFORM|ARCH)|EXPORT_PARAM_(INCLUDE_JSON|LAZY|OVERWRITE|APPEND|TIME\w*)"
    r"|CAPTURE_EVENT_TYPE|DEVICE_ID|DEVICE_TYPE|(START|STOP)_TRIGGER|(.*:)?(COLLECT_\w+|MODE|SAMPLING_\w+|CUDA_\w+)"
    r"|PROCESS_\d+:HOW_TO_ATTACH"
)
_HARMLESS_VALUE = re.compile(r"true|false|-?\d*(\.\d+)?", re.IGNORECASE)
_HARMLESS_FACT = re.compile(
    r"(Has|Is|Supports|Supported)\w*|CpuCores|CpuArchitecture|CpuDescription|CpuSpeedMhz|CudaDriverVersion"
    r"|NvDriverVersion|OsDescription|HardwarePlatform|SoftwarePlatform|CNTFRQMHz"
)

WHOLE_COLUMNS = {
    "ANALYSIS_FILE": "paths of files",
    "TARGET_INFO_NIC_INFO": "network cards",
    "NIC_ID_MAP": "network cards",
    "TARGET_INFO_NETWORK_METRICS": "network cards",
}
"""Tables of which every text goes, and what they hold."""
GPU_TABLES = ("TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU")
PROGRAM_OUTPUT = ("ProcessStreams", "contentId")
"""What the program printed: a text by its id."""

_IDENTITY = {
    "host name": re.compile(r"(EXPORT_HOST|DEVICE_DISPLAY_NAME|Hostname|HOSTNAME)"),
    "user name": re.compile(r"(EXPORT_USER|(.*:)?USER_NAME|USER|LOGNAME)"),
    "home folder": re.compile(r"HOME"),
}
_SECRET_NAME = re.compile(
    r"SECRET|TOKEN|PASSW|PASSPHRASE|CREDENTIAL|(API|ACCESS|PRIVATE|AUTH)_?KEY|_KEY$", re.IGNORECASE
)
_ASSIGNMENT = re.compile(r'([A-Za-z_]\w*)="?(.*?)"?', re.DOTALL)
_COMMON_NAMES = frozenset(("root", "user", "ubuntu", "localhost", "runner", "nobody", "jovyan", "Local (CLI)", REMOVED))
_SHORTEST_NAME, _SHORTEST_SECRET = 4, 8
"""Shorter names and values stand in common words: to search for them would damage the program's own."""
_KEY = re.compile(r"(?=.*\d)(?=.*[a-z])(?=.*[A-Z])[\w+=~-]{20,}|[0-9a-f]{32,}")
"""What nobody chose to call anything: long, of digits and letters of both cases, and no path."""

HOME = re.compile(r"(/home|/Users)/(?!user(?:/|$))[^/\s\0:;,\"']+|(?<![\w.-])/root(?=/)")
ANY_HOME = "/home/user"


def keeps_option(name: str, value: str) -> bool:
    """Return whether a capture or export option says nothing of the machine, its user or the program."""
    if _PERSONAL_OPTION.search(name):
        return not value
    return bool(_HARMLESS_OPTION.fullmatch(name) or _HARMLESS_VALUE.fullmatch(value))


def keeps_fact(name: str) -> bool:
    """Return whether a fact of the system could be that of any machine."""
    return _HARMLESS_FACT.fullmatch(name) is not None


@dataclass
class Identities:
    """Names that must not be left anywhere, with what each of them is."""

    words: dict[str, str] = field(default_factory=dict)
    """Host names, user names and secrets: gone where they stand as a word of their own."""
    homes: set[str] = field(default_factory=set)
    """Home folders: their files keep the names below them."""

    def learn(self, name: str, value: str) -> None:
        """Take what a personal option or a fact of the system says about who and where."""
        if name.endswith(":ENVIRONMENT_VARIABLE"):
            self.learn_variable(value)
        elif re.search(r":ARGUMENT_\d+$", name):
            key, _, given = value.rpartition("=")
            self._note_secret(key, given)
        else:
            self._note(name, value)

    def learn_variable(self, assignment: str) -> None:
        """Take one `NAME=value` of an environment."""
        if found := _ASSIGNMENT.fullmatch(assignment):
            self._note(found[1], found[2])
            self._note_secret(found[1], found[2])

    def _note(self, name: str, value: str) -> None:
        kind = next((kind for kind, pattern in _IDENTITY.items() if pattern.fullmatch(name)), "")
        if kind == "home folder":
            if re.fullmatch(r"/[^/]+(/[^/]+)+", value) and value != ANY_HOME:
                self.homes.add(value)
        elif kind and len(value) >= _SHORTEST_NAME and value not in _COMMON_NAMES:
            self.words[value] = kind

    def _note_secret(self, name: str, value: str) -> None:
        named = _SECRET_NAME.search(name) and len(value) >= _SHORTEST_SECRET and not value.isalpha()
        if (named and not re.match(r"[./~]", value)) or _KEY.fullmatch(value):
            self.words[value] = "secret"

    def pattern(self) -> re.Pattern[str] | None:
        """Return what finds them, the longest first; None where there are none."""
        return _any(
            [rf"{re.escape(home)}(?![\w.-])" for home in self.homes]
            + [_plain(word) if word.isalpha() else rf"(?<!\w){re.escape(word)}(?!\w)" for word in self.words]
        )

    def search(self) -> re.Pattern[bytes] | None:
        """Return what finds those that are no plain words in the bytes of a file; None where there are none."""
        distinct = [*self.homes, *(word for word in self.words if not word.isalpha())]
        found = _any([re.escape(name) for name in distinct])
        return re.compile(found.pattern.encode("utf-8", "surrogateescape")) if found else None


def _plain(word: str) -> str:
    """Find a plain word only where a name stands, beside a slash or an `@`: a range may be called the same."""
    return rf"(?<=[/@~]){word}(?!\w)|(?<!\w){word}(?=[/@])"


def _any(parts: list[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(sorted(parts, key=len, reverse=True))) if parts else None
