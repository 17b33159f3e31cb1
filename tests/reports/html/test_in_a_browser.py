"""The page in a real browser, as a person uses it."""

import itertools
from typing import Any

import pytest
from playwright.sync_api import Page, expect


@pytest.fixture
def run(records: Any) -> Any:
    """Eight calls: two at the same time, three denied or failed."""
    denied = records.decision("deny", "rule", "a demo publishes nothing", "no-push", "policy.yml:7", instead="say it")
    denied["facts"] = [{"kind": "exec", "value": "git push", "granted_by": None, "forbidden_by": "no-push"}]
    diff = "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-old\n+new"
    calls = [
        records.call(1, "read", {"path": "a.txt"}, "ok", "first"),
        records.call(2, "read", {"path": "b.txt"}, "ok", "second", started_at="2026-01-01T12:00:00.100Z"),
        records.call(3, "bash", {"command": "git push"}, "denied", "Blocked", decision=denied),
        records.call(4, "bash", {"command": "make"}, "error", "\x1b[1;31mFAILED\x1b[0m needle\x1b[2J"),
        records.call(5, "edit", {"path": "a.py"}, "ok", "done", details={"diff": diff, "edits": 1}),
        records.call(6, "grep", {"pattern": "x"}, "ok", "y"),
        records.call(7, "grep", None, "error", "no JSON", stage="arguments", arguments_json='{"pat'),
        records.call(8, "ls", {}, "ok", ""),
    ]
    return records.transcript(calls)


def shown_calls(page: Page) -> list[str]:
    return [row.get_attribute("id") or "" for row in page.locator(".row.call:visible").all()]


def test_every_turn_and_call_is_a_row(viewer: Any, run: Any) -> None:
    page = viewer.open(run)
    assert page.locator(".row").evaluate_all("rows => rows.map((row) => row.id)") == [
        *("turn-1", "call-1", "call-2", "turn-2", "call-3", "call-4"),
        *("turn-3", "call-5", "call-6", "turn-4", "call-7", "call-8"),
    ]
    expect(page.locator("#call-3 > summary")).to_have_text("denied#3bashgit push0.25 s")


def test_calls_at_the_same_time_have_bars_above_each_other(viewer: Any, run: Any) -> None:
    page = viewer.open(run)
    first, second = (page.locator(f"#call-{seq} .bar").bounding_box() for seq in (1, 2))
    assert first["x"] < second["x"] < first["x"] + first["width"] < second["x"] + second["width"]


def test_a_click_opens_a_denied_call_to_its_decision(viewer: Any, run: Any) -> None:
    page = viewer.open(run)
    page.click("#call-3 > summary")
    inside = page.locator("#call-3 .inside")
    expect(inside.locator("dl").first).to_have_text(
        "policy saysdeny (rule)ruleno-pushstands atpolicy.yml:7reasona demo publishes nothinginsteadsay it"
    )
    expect(inside.locator("table")).to_have_text("it wouldgranted byforbidden byexecgit pushno-push")
    expect(inside.locator("pre").first).to_have_text("git push")


def test_the_command_that_explains_a_decision_can_be_copied(viewer: Any, run: Any) -> None:
    page = viewer.open(run)
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text }")
    page.click("#call-3 > summary")
    page.get_by_role("button", name="Copy the command that explains it").click()
    expected = """ci-agent policy explain --policy review --tool bash --args '{"command": "git push"}'"""
    assert page.evaluate("window.copied") == expected


def test_colours_are_rendered_and_other_control_is_shown(viewer: Any, run: Any) -> None:
    page = viewer.open(run, "#call-4")
    output = page.locator("#call-4 pre").last
    expect(output).to_have_text("FAILED needle\\x1b[2J")
    assert output.locator("span").evaluate_all("spans => spans.map((span) => span.className)") == ["s1 f1", "escape"]


def test_an_edit_shows_what_it_changed(viewer: Any, run: Any) -> None:
    page = viewer.open(run, "#call-5")
    diff = page.locator("#call-5 pre", has=page.locator(".diff"))
    lines = diff.locator(".diff").evaluate_all("lines => lines.map((line) => [line.className, line.textContent])")
    assert lines == [
        ["diff drop", "--- a.py"],
        ["diff add", "+++ a.py"],
        ["diff place", "@@ -1 +1 @@"],
        ["diff drop", "-old"],
        ["diff add", "+new"],
    ]


def test_arguments_that_are_no_json_are_shown_as_they_came(viewer: Any, run: Any) -> None:
    page = viewer.open(run, "#call-7")
    expect(page.locator("#call-7 pre").first).to_have_text('{"pat')


def test_filters_choose_by_status_tool_and_text_together(viewer: Any, run: Any) -> None:
    page = viewer.open(run)
    page.click("button[data-status=error]")
    assert shown_calls(page) == ["call-4", "call-7"]
    expect(page.locator(".count")).to_have_text("2 of 8 calls")
    page.select_option(".tool", "bash")
    assert shown_calls(page) == ["call-4"]
    page.click("button[data-status=all]")
    assert shown_calls(page) == ["call-3", "call-4"]
    page.fill("input[type=search]", "NEEDLE")
    expect(page.locator("#call-3")).to_be_hidden()
    assert shown_calls(page) == ["call-4"]
    assert page.locator(".row.turn:visible").count() == 1


def test_a_search_without_a_find_says_so_and_offers_the_way_back(viewer: Any, run: Any) -> None:
    page = viewer.open(run)
    page.fill("input[type=search]", 'no such "thing"')
    expect(page.locator(".nothing")).to_be_visible()
    page.click(".clear")
    assert len(shown_calls(page)) == 8
    expect(page.locator("input[type=search]")).to_have_value("")


def test_a_search_finds_quoted_text_and_line_ends_in_any_case(viewer: Any, records: Any) -> None:
    calls = [records.call(1, "ls", {}, "ok", 'Say "Ä"\nnow'), records.call(2, "ls", {}, "ok", "other")]
    page = viewer.open(records.transcript(calls))
    page.fill("input[type=search]", 'say "ä"')
    expect(page.locator("#call-2")).to_be_hidden()
    assert shown_calls(page) == ["call-1"]


def test_a_link_to_a_call_opens_it_and_brings_it_into_view(viewer: Any, records: Any) -> None:
    page = viewer.open(records.transcript([records.call(n, "ls", {}, "ok", f"output {n}") for n in range(1, 301)]))
    expect(page.locator("#call-250 .inside")).to_have_count(0)
    page.evaluate("location.hash = '#call-250'")
    expect(page.locator("#call-250 pre").last).to_have_text("output 250")
    expect(page.locator("#call-250")).to_be_in_viewport()
    expect(page.locator("#call-250 > summary")).to_be_focused()


def test_a_link_to_a_call_that_a_filter_hides_shows_all_again(viewer: Any, run: Any) -> None:
    page = viewer.open(run)
    page.click("button[data-status=denied]")
    page.evaluate("location.hash = '#call-1'")
    expect(page.locator("#call-1")).to_be_in_viewport()
    assert len(shown_calls(page)) == 8


def test_the_list_of_problems_leads_to_the_calls(viewer: Any, run: Any) -> None:
    page = viewer.open(run)
    page.click(".problems a >> nth=0")
    expect(page.locator("#call-3 .inside")).to_be_visible()


def test_the_keyboard_is_enough(viewer: Any, run: Any) -> None:
    page = viewer.open(run)
    focused = "document.activeElement.closest('.row')?.id"
    for key, row in zip("jjnnpk", ("turn-1", "call-1", "call-3", "call-4", "call-3", "turn-2"), strict=True):
        page.keyboard.press(key)
        assert page.evaluate(focused) == row
    page.keyboard.press("n")
    page.keyboard.press("Enter")
    expect(page.locator("#call-3 .inside")).to_be_visible()
    page.keyboard.press("d")
    assert shown_calls(page) == ["call-3"]
    page.keyboard.press("/")
    expect(page.locator("input[type=search]")).to_be_focused()
    page.keyboard.type("de")  # in the field, letters are letters
    expect(page.locator("input[type=search]")).to_have_value("de")
    page.keyboard.press("Escape")
    assert len(shown_calls(page)) == 8
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()


def test_hostile_text_runs_nothing_and_stays_readable(viewer: Any, records: Any, hostile: str) -> None:
    calls = [
        records.call(1, hostile, {hostile: hostile, "path": hostile}, "error", hostile, details={"diff": hostile}),
        records.call(2, "ls", None, "error", hostile, stage="arguments", arguments_json=hostile),
    ]
    document = records.transcript(calls, result=records.result("stopped", 5, hostile) | {"final_text": hostile})
    document["messages"][0]["content"].insert(0, {"type": "text", "text": hostile})
    page = viewer.open(document)
    for row in ("turn-1", "call-1", "call-2"):
        page.click(f"#{row} > summary")
        expect(page.locator(f"#{row} .inside pre").first).to_be_visible()
    assert page.title() == "stopped, exit code 5, ci-agent"
    assert page.locator("img, script:not([type]):not(body > script)").count() == 0
    output = page.locator("#call-2 pre").last
    expect(output).to_contain_text("<img src=x onerror=\"document.title='owned'\">")
    expect(output).to_contain_text("\u2039U+202E\u203agnp.exe\u2039U+202C\u203a")


def test_what_a_page_may_not_do_is_refused_by_its_own_content_policy(viewer: Any, run: Any) -> None:
    page = viewer.open(run)
    for code in ("eval('1')", "document.body.append(Object.assign(document.createElement('script'), {text: 'x=1'}))"):
        page.evaluate(f"try {{ {code} }} catch {{}}")
    page.evaluate("fetch('http://127.0.0.1:9/').catch(() => {})")
    assert page.evaluate("typeof window.x") == "undefined"
    refused = viewer.complaints.copy()
    viewer.complaints.clear()
    assert len([line for line in refused if "Content Security Policy" in line]) >= 2
    assert not [line for line in refused if line.startswith("request")]


def test_a_picture_is_shown(viewer: Any, records: Any) -> None:
    dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    picture = {"type": "image", "mime_type": "image/png", "data_base64": dot}
    page = viewer.open(records.transcript([records.call(1, "read", {}, "ok", "", content=[picture])]), "#call-1")
    expect(page.locator("#call-1 img")).to_be_visible()
    assert page.locator("#call-1 img").evaluate("image => image.decode().then(() => image.naturalWidth)") == 1
    viewer.complaints.clear()  # the request is for the data: address


def test_a_very_long_output_is_shown_in_part_until_asked_for(viewer: Any, records: Any) -> None:
    page = viewer.open(records.transcript([records.call(1, "read", {}, "ok", "x" * 150_000)]), "#call-1")
    output = page.locator("#call-1 pre").last
    output.get_by_role("button", name="Show 50,000 more characters").click()
    expect(output).to_have_text("x" * 150_000)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_on_its_background(viewer: Any, run: Any, scheme: str) -> None:
    page = viewer.open(run, "#call-3", color_scheme=scheme)
    back = colour_of(page, "body", "backgroundColor")
    for name in ("body", ".row.call", ".status.denied", ".status.error", ".status.ok", ".soft", ".row.turn > summary"):
        assert contrast(colour_of(page, name, "color"), back) >= 4.5, (scheme, name)


def colour_of(page: Page, name: str, kind: str) -> str:
    return str(page.locator(name).first.evaluate(f"element => getComputedStyle(element).{kind}"))


def contrast(first: str, second: str) -> float:
    """The ratio of WCAG 2, 1 to 21; 4.5 is asked for text."""
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    channels = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_on_a_phone_nothing_is_wider_than_the_screen(viewer: Any, run: Any) -> None:
    page = viewer.open(run, "#call-3", viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for earlier, later in itertools.pairwise(page.locator("#call-1, #call-2, #call-3").all()):
        above, below = earlier.bounding_box(), later.bounding_box()
        assert above["y"] + above["height"] <= below["y"] + 1


def test_printed_the_controls_are_gone_and_the_calls_are_there(viewer: Any, run: Any) -> None:
    page = viewer.open(run)
    page.emulate_media(media="print")
    expect(page.locator(".controls")).to_be_hidden()
    assert len(shown_calls(page)) == 8


def test_without_scripts_the_problems_and_the_answer_are_there(viewer: Any, run: Any) -> None:
    page = viewer.open(run, java_script_enabled=False)
    expect(page.locator(".problems li")).to_have_count(3)
    expect(page.get_by_text("All is well.")).to_be_visible()
    expect(page.get_by_text("needs JavaScript")).to_be_visible()


def test_a_run_without_calls_is_a_page_too(viewer: Any, records: Any) -> None:
    page = viewer.open(records.transcript([], messages=[]))
    expect(page.locator(".row")).to_have_count(0)
    expect(page.locator("h1")).to_have_text("completed, exit code 0")


def test_five_thousand_calls_are_all_there_and_can_be_searched(viewer: Any, records: Any) -> None:
    calls = [records.call(n, "bash", {"command": f"echo {n}"}, "ok", f"output {n}\n" * 50) for n in range(1, 5001)]
    page = viewer.open(records.transcript(calls))
    expect(page.locator(".row.call")).to_have_count(5000)
    page.fill("input[type=search]", "output 4321")
    expect(page.locator(".count")).to_have_text("1 of 5,000 calls")
    page.click("#call-4321 > summary")
    expect(page.locator("#call-4321 pre").last).to_contain_text("output 4321")
