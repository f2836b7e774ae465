// Style, script and explanations of the page.
#include "reports/page/page_text.h"

namespace decodelab {

const char* const kPageStyle = R"css(
:root { color-scheme: light dark; --paper: #fcfcfd; --card: #ffffff; --ink: #1f2429; --soft: #59636e; --line: #dfe3e8;
    --accent: #0072b2; --badge: #eef2f6; }
@media (prefers-color-scheme: dark) {
:root { --paper: #14171b; --card: #1b1f24; --ink: #e4e7eb; --soft: #9aa5b1; --line: #333a42; --accent: #6bb8e6;
    --badge: #262c33; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
    font: 15px/1.55 system-ui, "Segoe UI", "Liberation Sans", Arial, sans-serif; }
main, header, nav { max-width: 1160px; margin: 0 auto; padding: 0 24px; }
header { padding-top: 34px; }
h1 { font-size: 27px; line-height: 1.2; margin: 0 0 6px; letter-spacing: -0.01em; }
h2 { font-size: 20px; margin: 44px 0 12px; padding-top: 14px; border-top: 1px solid var(--line); }
h3 { font-size: 16px; margin: 26px 0 8px; }
p { margin: 8px 0; max-width: 78ch; }
.soft, figcaption, .notes { color: var(--soft); font-size: 13.5px; }
nav { padding-top: 12px; font-size: 13.5px; }
nav a { margin-right: 14px; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
.banner { background: var(--card); border: 1px solid var(--line); border-left: 4px solid var(--accent); border-radius:
    6px; padding: 14px 20px; margin: 18px 0; }
.banner p { margin: 4px 0; max-width: none; }
.badges { margin-top: 10px; display: flex; flex-wrap: wrap; gap: 6px; }
.badge { background: var(--badge); border-radius: 11px; padding: 2px 11px; font-size: 12.5px; white-space: nowrap; }
figure { margin: 14px 0 26px; padding: 16px 18px 12px; background: var(--card); border: 1px solid var(--line);
    border-radius: 6px; }
figure h3 { margin-top: 0; }
.drawing { overflow-x: auto; color: var(--ink); }
.drawing svg { display: block; max-width: 100%; height: auto; overflow: visible; }
figcaption { max-width: 100ch; margin-top: 8px; }
.scroll { overflow-x: auto; margin: 8px 0; }
table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: 4px 0 6px; white-space: nowrap; }
th, td { padding: 4px 14px 4px 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { color: var(--soft); font-weight: 600; white-space: nowrap; }
td.n, th.n { text-align: right; white-space: nowrap; }
tbody tr:hover { background: var(--badge); }
.notes { margin: 6px 0 14px; padding-left: 18px; max-width: 100ch; }
details { margin: 8px 0; }
summary { cursor: pointer; color: var(--accent); font-size: 13.5px; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: 12px 16px; overflow-x:
    auto; font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; white-space: pre-wrap; overflow-wrap: anywhere;
    }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 5px 20px; max-width: 110ch; }
dt { font-weight: 600; }
dd { margin: 0; }
footer { max-width: 1160px; margin: 48px auto 30px; padding: 0 24px; color: var(--soft); font-size: 12.5px; }
@media (max-width: 640px) { dl { grid-template-columns: 1fr; } dd { margin-bottom: 6px; } }
@media print { figure, .banner { break-inside: avoid; } nav { display: none; } }
)css";

const char* const kPageScript = R"js(
(async () => {
  if (!window.DecompressionStream) return;  // the drawings stay
  const unpacked = (id) => {
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  };
  const script = document.createElement("script");
  script.textContent = await unpacked("vega");
  document.head.append(script);
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  // What a mark has no number for is left out.
  const known = (value) => value !== null && !/^(NaN%?|undefined|null)$/.test(String(value));
  const formatTooltip = (value, escape) => value === null || typeof value !== "object" ? escape(String(value))
    : "<table>" + Object.entries(value).filter(([, field]) => known(field)).map(([name, field]) =>
        `<tr><td class="key">${escape(name)}</td><td class="value">${escape(String(field))}</td></tr>`).join("") + "</table>";
  for (const place of document.querySelectorAll("[data-figure]")) {
    const text = await unpacked("spec-" + place.dataset.figure);
    document.getElementById("spec-" + place.dataset.figure).textContent = text;  // for whoever looks
    const spec = JSON.parse(text);
    const holder = document.createElement("div");
    try {
      const tooltip = { theme: dark ? "dark" : "custom", formatTooltip };
      await vegaEmbed(holder, spec, { renderer: "svg", actions: false, tooltip });
      place.replaceChildren(holder);
      place.dataset.interactive = "true";
    } catch (error) {
      console.error(place.dataset.figure, error);  // the drawing stays
    }
  }
  document.body.dataset.ready = "true";
})();
)js";

const char* const kHowTimeWasTaken = R"html(
<p>Every step is timed by itself. In a <b>block</b> every arm visits the cell twice, in an order that is its own
mirror image and is drawn anew for every block, so that a machine that slowly becomes faster or slower does so for
all arms alike. A visit begins with warm-up steps that are not timed. The visits of each half of a block are open at
once and run in slices of some steps (the key <code>turn_steps</code>), one arm after the other, forth and back; in
phase continue an arm's turn is one round of guesses, or one step, and the arm that is the furthest behind is next. A
disturbance of the machine that lasts longer than a slice therefore slows every arm. Rows of cells whose visits
could not be open at once are flagged <code>whole-visits</code>. Where there are as many cores as threads, each
thread stays on a core of its own, for its whole life.</p>
<p>The value of a visit is the mean over whole periods of 8 steps, trimmed by 10&nbsp;% within each place of the
period: costs that come every few steps count, hiccups hardly do. A ratio is taken of pairs: each step of an arm
with the baseline's step at the same place of its visit, which ran beside it. Of each place of the period, over a
block, the pairs whose differences are the outer 20&nbsp;% at each end are left out, and the mean times of the
others make the block's contrast. Blocks of one process are averaged, and the 95&nbsp;% intervals are Student's t
over processes (<b>launches</b>), because memory layout and heuristics change per process and not per block.</p>
<p>The smallest detectable effect is what a two-sided test at .05 finds with 80&nbsp;% power, computed with the
upper 90&nbsp;% limit of the spread:
(t<sub>.975</sub>&nbsp;+&nbsp;t<sub>.8</sub>)&nbsp;&middot;&nbsp;s&nbsp;/&nbsp;&radic;n. Intervals of single rows
are not adjusted for the number of rows; verdicts are.</p>
<p>A <b>verdict</b> is FASTER or SLOWER when the difference holds within the family of all contrasts of the run
(max-T by shared sign flips of launches, two-sided .05) and in Student's t test, SAME when the whole interval lies
within 1&nbsp;%, else INCONCLUSIVE. There is none below 6 launches, or 10 where the family has more than 4
contrasts: no sign flip could be significant. Blocks in which other processes used more than 2&nbsp;% of the cores'
time are void for all arms alike, unless that were more than a quarter of them, or a launch has no other; those count
and the row is marked disturbed. Where others used more than 35&nbsp;%, an only block is void too, and if they did so in
all blocks on average, there is no verdict.</p>
)html";

const char* const kGlossary = R"html(
<dl>
<dt>arm</dt><dd>What is compared: a preset with variants added (+) or removed (-).</dd>
<dt>baseline</dt><dd>The arm that all ratios refer to.</dd>
<dt>cell</dt><dd>One point of the sweep: model, type, device, phase, batch and length. <code>b4 pp512</code> is the
prefill of 4 prompts of 512 tokens, <code>b4 tg @ d4096</code>
a decode step of 4 rows that begins with 4096 keys held, <code>b4 gen @ d512</code> whole completions.</dd>
<dt>visit</dt><dd>One arm in one cell at one moment: warm-up steps, then timed steps.</dd>
<dt>block</dt><dd>One round in which every arm visits the cell twice.</dd>
<dt>launch</dt><dd>A fresh process; the unit of inference. A single launch says something about this process only.</dd>
<dt>time ratio</dt><dd>Time of the arm over time of the baseline, paired; below 1 is faster. Its inverse is the
speed-up.</dd>
<dt>detects</dt><dd>The smallest effect that this many launches would find with 80&nbsp;% power.</dd>
<dt>in-run null</dt><dd>The difference between the second and the first visits of two arms, which no true effect
moves. It checks drift within blocks, and spans 0 in 95&nbsp;% of rows when all is well.</dd>
<dt>engaged</dt><dd>Counters have shown that the variants of the arm really ran.</dd>
<dt>peak</dt><dd>The most bytes of tensors held in one step, above weights and cache.</dd>
<dt>scope</dt><dd>What a step is: <code>forward</code> (ids in, last logits out), <code>step</code> (and choice, stop
check, ids on the host), <code>generate</code> (a whole completion), <code>serving</code> (what a client of a server
sees: the time to the first token, between tokens, or to the last one, where every other engine runs its normal
step).</dd>
</dl>
)html";

}  // namespace decodelab
