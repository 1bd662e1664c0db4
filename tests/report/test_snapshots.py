"""Whole reports, as a reader gets them. `pytest --snapshot-update` after a deliberate change; then read them aloud."""

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

import samples
from gpudiag.report import markdown


class MarkdownFile(SingleFileSnapshotExtension):
    file_extension = "md"
    _write_mode = WriteMode.TEXT


@pytest.mark.parametrize("name", samples.ALL)
def test_markdown(name: str, snapshot: SnapshotAssertion) -> None:
    text = markdown.render(samples.ALL[name]().model_copy(update={"titles": samples.TITLES}))
    assert text == snapshot(extension_class=MarkdownFile)
