"""The report as a page in a real browser: on a phone nothing but tables and charts is moved sideways."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fakes.feed import finished
from tests.tiers import SECOND_TIER
from tests.unit.test_report_texts import SPEC
from trainwatch.core.views.report import ReportSources
from trainwatch.core.views.report_building import build_report
from trainwatch.core.views.report_pages import html

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CHART = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 300" width="720" height="300"><rect width="720"/></svg>'
)
MEASURE = "<script>document.title = `${document.documentElement.scrollWidth} of ${innerWidth}`</script>"


@SECOND_TIER
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
@pytest.mark.parametrize("columns", [390, 1280])
def test_the_page_is_as_wide_as_the_window(tmp_path: Path, columns: int) -> None:
    text = html(build_report(finished(), ReportSources(spec=SPEC)), CHART)
    file = tmp_path / "report.html"
    # A frame, because a browser's own window has a least width.
    framed = text.replace("</body>", f"{MEASURE}</body>").replace('"', "&quot;")
    file.write_text(f'<iframe width="{columns}" height="800" style="border: 0" srcdoc="{framed}"></iframe>'
                    "<script>onload = () => document.body.append(frames[0].document.title)</script>")  # fmt: skip
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'browser'}"]
    done = subprocess.run(
        [*command, "--dump-dom", file.as_uri()], capture_output=True, text=True, check=False, timeout=100
    )
    found = re.search(r"(\d+) of (\d+)</body>", done.stdout)
    assert found is not None, done.stderr[-2000:]
    assert found[2] == str(columns)
    assert int(found[1]) <= columns
