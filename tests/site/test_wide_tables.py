"""docs/_ext/wide_tables.py: headings. test_browser.py looks whether tables are whole."""

import pytest
from wide_tables import HEADING, breakable

pytestmark = pytest.mark.site


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("LSTMBlockCell", "LSTM<wbr>Block<wbr>Cell"),
        ("our CudnnRNNV3", "our Cudnn<wbr>RNNV3"),
        ("OpenVINO", "OpenVINO"),
    ],
)
def test_long_names_in_headings_have_breaks(heading: str, expected: str) -> None:
    row = '<tr><th class="head textRightAligned"><p>{}</p></th><td>LSTMBlockCell</td></tr>'
    assert HEADING.sub(breakable, row.format(heading)) == row.format(expected)
