"""What the numbers of a summary say, in sentences; the page and the command share them."""

from __future__ import annotations

from typing import Any

from softlearning.report.svg import clean, short

Summary = dict[str, Any]
LITTLE = 0.02  # share of the loss
MEASURES = {"disagreement": "disagreement", "top_probability": "top probability"}


def name(text: str) -> str:
    """A name from the data, in quotes, not too long for a sentence."""
    return f"“{clean(text, 60)}”"


def percent(share: float | None, digits: int = 1) -> str:
    return "–" if share is None else f"{100 * share:.{digits}f} %".replace("-", "−")


def score(value: float | None, summary: Summary) -> str:
    """A share in percent, R² with three digits."""
    if value is None:
        return "unknown"
    return percent(value) if summary["classes"] else f"{value:.3f}".replace("-", "−")


def title(summary: Summary) -> str:
    """What the page is about: target, table, and the score."""
    a = summary["answer"]
    target = clean(summary["target"], 60) or summary["kind"]
    table = f" in {clean(summary['name'], 60)}" if summary["name"] else ""
    if a["metric"]:
        return f"{target}{table}: {a['metric']['name']} {short(a['metric']['value'])}"
    return f"{target}{table}: {a['score_name']} {score(a['value'], summary)}"


def asked_for(summary: Summary) -> str:
    """The metric that was asked for; empty where none was."""
    m = summary["answer"]["metric"]
    if not m:
        return ""
    return (
        f"The metric that was asked for, {m['name']}, is {short(m['value'])} on rows the blend has not seen (95 % "
        f"interval {short(m['low'])} to {short(m['high'])})."
    )


def headline(summary: Summary) -> str:
    a = summary["answer"]
    interval = f"95 % interval {score(a['low'], summary)} to {score(a['high'], summary)}"
    target = f" of {name(summary['target'])}" if summary["target"] else ""
    counted = ", rows counted by their weights" if a["weighted"] else ""
    if summary["classes"]:
        return (
            f"On rows it has not seen, the blend names the right one of {len(summary['classes'])} classes{target} in "
            f"{percent(a['value'])} of cases ({interval}); always naming the commonest class would be right in "
            f"{percent(summary['comparisons']['trivial']['score'])}{counted}."
        )
    if a["value"] is None:
        return "The target never varies, so there is nothing to explain."
    return (
        f"On rows it has not seen, the blend is off by {short(a['rmse']['value'])} (root mean squared error, 95 % "
        f"interval {short(a['rmse']['low'])} to {short(a['rmse']['high'])}) and explains {percent(a['value'])} of the "
        f"variance{target or ' of the target'} ({percent(a['low'])} to {percent(a['high'])}){counted}."
    )


def useless(summary: Summary) -> str:
    """Why the model is of no use; empty where it is of some."""
    reason = summary["useless"]
    return f"{reason[:1].upper()}{reason[1:]}." if reason else ""


def rival(key: str, line: dict[str, Any]) -> str:
    """What a row of the comparisons is, in few words."""
    return RIVALS[key] + (f": {line['rival']}" if line["rival"] else "")


RIVALS = {
    "oracle": "oracle",
    "pick": "best on the other folds",
    "uniform": "equal weights",
    "trivial": "always the same answer",
}  # key of a comparison -> its name


def verdict(line: dict[str, Any]) -> str:
    if line["error"] is None:
        return "undecided (a single group)"
    return "better" if line["better"] else "worse" if line["worse"] else "no clear difference"


def against_best(summary: Summary) -> str:
    """Whether blending was worth it, said plainly also when it was not."""
    best = summary["comparisons"]["oracle"]
    size = f"{percent(abs(best['share']))} {'lower' if best['gain'] >= 0 else 'higher'} loss"
    if best["better"]:
        return f"Blending pays: {size} than {best['rival']}, its best single specialist, more than chance explains."
    if best["worse"]:
        return f"Blending does not pay here: {size} than {best['rival']} alone. Consider that specialist by itself."
    chance = "a single group of rows cannot tell" if best["error"] is None else "within chance"
    return f"No clear difference from {best['rival']}, its best single specialist: {size}, {chance}."


def certainty(summary: Summary) -> str:
    """What was proved of the weights, and what the rule did then."""
    c = summary["certificate"]
    small = c["exact_gap"] <= 1e-6 * max(abs(c["exact_objective"]), 1e-300)
    gap = "to within rounding" if small else f"to within {short(c['exact_gap'])}"
    if c["rule"] == "simplex":
        proof = f"On the out-of-fold rows they were solved on, no other weights have a lower loss (proved {gap})"
        proof += "; they are the only optimum" if c["unique"] else "; other weights may do as well"
    else:
        found = "On the out-of-fold rows they were solved on, the best weights have a loss of "
        found += f"{short(c['exact_objective'])} (proved {gap})"
        proof = f"{found}; {_departure(c)}"
    return f"{proof}. The weights amount to {c['effective']:.1f} equally weighted specialists."


def _departure(c: dict[str, Any]) -> str:
    """How the weights of a rule differ from the exact optimum."""
    if c["moved"] < 0.005:
        return "these are the weights"
    higher = percent(c["objective"] / c["exact_objective"] - 1, 2) if c["exact_objective"] > 0 else "a little"
    moved, there = percent(c["moved"], 0), f"where the loss on these rows is {higher} higher"
    if c["rule"] == "guarded":
        return (
            f"the guard moved {moved} of the weight from it towards prior shares, {there}, because weights "
            "learnt from few rows follow their noise"
        )
    return f"the rule {name(c['rule'])} puts {moved} of the weight elsewhere, {there}"


def families(summary: Summary) -> str:
    top = summary["families"][0]
    return f"Weight by family of algorithms: {top['family']} models carry {percent(top['weight'], 0)} of the blend."


def weights(summary: Summary) -> str:
    if any(w["low"] is None for w in summary["weights"]):
        return "Bars are the weights."
    sure = [w for w in summary["weights"] if w["low"] > 0]
    named = f" ({', '.join(w['specialist'] for w in sure[:4])})" if sure else ": which ones carry it depends on chance"
    return (
        "Bars are the weights, lines their 95 % intervals when the rows are drawn again. "
        f"{len(sure)} of {len(summary['weights'])} specialists keep some weight nearly always{named}."
    )


def stated(summary: Summary) -> str:
    """What the probabilities of the calibration curve are about."""
    return f"that a row is {name(summary['classes'][1])}" if len(summary["classes"]) == 2 else "of its first choice"


def calibration(summary: Summary) -> str:
    return (
        f"Dots compare the probability {stated(summary)}, as stated, with how often it was true; on the dashed line "
        f"both agree. They differ by {percent(summary['calibration']['error'])} on average."
    )


def sharpness(summary: Summary) -> str:
    counts = summary["calibration"]["counts"]
    sure = (sum(counts[-2:]) + (sum(counts[:2]) if len(summary["classes"]) == 2 else 0)) / max(sum(counts), 1)
    return (
        f"How many rows were given which probability {stated(summary)}. For {percent(sure, 0)} of them the blend is at "
        "least 90 % sure."
    )


def confusion(summary: Summary) -> str:
    c = summary["confusion"]
    part = len(c["classes"]) < c["all_classes"]
    some = f" The {len(c['classes'])} classes with most errors are shown." if part else ""
    return (
        f"Rows are the true classes, columns the answers, numbers count rows: {c['wrong']:,} of {c['rows']:,} rows lie "
        f"off the diagonal and are wrong.{some}"
    )


def roc(summary: Summary) -> str:
    r, c = summary["ranking"], summary["ranking"]["chosen"]
    return (
        f"The dot is the threshold of the answers, {r['threshold']:.2f}: it finds {percent(c['recall'])} of "
        f"{name(summary['classes'][1])} and raises false alarms on {percent(c['fall_out'])} of the others. Area under "
        f"the curve {r['auc']:.3f}; chance has 0.5."
    )


def precision_recall(summary: Summary) -> str:
    r, c = summary["ranking"], summary["ranking"]["chosen"]
    return (
        f"At the threshold {r['threshold']:.2f} (the dot), {percent(c['precision'])} of the rows named "
        f"{name(summary['classes'][1])} are so; {percent(r['prevalence'])} of all rows are. Average precision "
        f"{r['average_precision']:.3f}."
    )


def dependence(summary: Summary, line: dict[str, Any]) -> str:
    low, high = (pick(line["parts"], key=lambda p: p["answer"]) for pick in (min, max))
    what = f"probability of {name(line['of'])}" if summary["classes"] else "prediction"
    show = (lambda v: percent(v, 0)) if summary["classes"] else short
    return (
        f"The mean {what} when every row is given the same value of {name(line['column'])}, the rest as it is: from "
        f"{show(low['answer'])} at {_value(low, line)} to {show(high['answer'])} at {_value(high, line)}."
    )


def errors_along(summary: Summary, line: dict[str, Any]) -> str:
    worst = max(line["parts"], key=lambda p: abs(p["error"]))
    if summary["classes"]:
        said = f"most around {_value(worst, line)}, where {percent(worst['error'], 0)} are wrong"
        return f"How often the answer is wrong along {name(line['column'])}: {said}. Lines are 95 % intervals."
    side = "low" if worst["error"] > 0 else "high"
    said = f"around {_value(worst, line)} predictions are too {side} by {short(abs(worst['error']))} on average"
    chance = "" if worst["clear"] else ", within chance"
    return f"Mean residual along {name(line['column'])}: {said}{chance}. Lines are 95 % intervals."


def _value(part: dict[str, Any], line: dict[str, Any]) -> str:
    return short(part["at"]) if line["number"] else name(part["name"])


def times(summary: Summary) -> str:
    p, first = summary["provenance"], summary["times"][0]
    total = p["fit_seconds"] + p["predict_seconds"] + p["refit_seconds"]
    share = (first["folds"] + first["final"]) / total if total > 0 else 0.0
    return (
        f"Seconds on one core, all folds and the final fit: {total:.1f} in all, of which {first['specialist']} took "
        f"{percent(share, 0)}."
    )


def reads(line: dict[str, Any]) -> str:
    """What a stacker reads."""
    who = ", ".join(f"{h['name']} {percent(h['share'], 0)}" for h in line["reads"][:5])
    more = f" and {len(line['reads']) - 5} more" if len(line["reads"]) > 5 else ""
    return f"{line['stacker']} ({percent(line['weight'], 0)} of the weight) is a stacker: it reads {who}{more}."


def scatter(summary: Summary) -> str:
    return (
        "Each dot is a row: predicted against true value; on the dashed line the prediction is exact. "
        f"Half of the predictions are off by less than {short(summary['residuals']['median'])}."
    )


def histogram(summary: Summary) -> str:
    return (
        "How many rows have which error (true minus predicted). The average, "
        f"{short(summary['residuals']['bias'])}, would be far from zero if predictions were too low or too high."
    )


def disagreement(summary: Summary) -> str:
    first, last = (summary["uncertainty"]["bins"][end]["error"] for end in (0, -1))
    if summary["classes"]:
        ends = f"{percent(first)} are wrong, in the last {percent(last)}"
    else:
        ends = f"the mean absolute error is {short(first)}, in the last {short(last)}"
    warns = summary["uncertainty"]["warns"] and last > 1.5 * first
    meaning = "so disagreement warns of errors" if warns else "so disagreement says little about errors here"
    return f"Rows in ten equal groups by how much the specialists disagree: in the first {ends}, {meaning}."


def answering_half(summary: Summary) -> str:
    """Error of the surest half of the rows against all, by each measure of uncertainty."""
    u = summary["uncertainty"]
    show, what = (percent, "an error rate") if summary["classes"] else (short, "a mean absolute error")
    parts = [f"{show(_at_half(m))} by {MEASURES[key]}" for key, m in u["measures"].items()]
    return f"Answering the surest half of the rows gives {what} of {' and '.join(parts)}; all rows, {show(u['all'])}."


def _at_half(measure: dict[str, Any]) -> float:
    half = min(range(len(measure["coverage"])), key=lambda i: abs(measure["coverage"][i] - 0.5))
    return measure["risk"][half]


def at_ninety(summary: Summary) -> dict[str, Any] | None:
    """The line of the coverages that is nearest to 90 %."""
    return min(summary["coverage"], key=lambda c: abs(c["nominal"] - 0.9), default=None)


def coverage(summary: Summary) -> str:
    line = at_ninety(summary)
    assert line is not None
    what, size = "sets of classes" if summary["classes"] else "intervals", "; too few rows for a finite width"
    if line["size"] is not None:
        per = f"{line['size']:.2f} classes per set" if summary["classes"] else f"{short(line['size'])} wide"
        size = f", {per} on average"
    over = summary["classes"] and line["low"] > line["nominal"]
    return (
        f"{what.capitalize()} of nominal coverage {percent(line['nominal'], 0)} held the truth in "
        f"{percent(line['value'])} of held-out rows{size}."
        + (" Coverage exceeds the nominal one because a set always holds the likeliest class." if over else "")
    )


def diversity(summary: Summary) -> str:
    d = summary["diversity"]
    return (
        "Correlation of the specialists' errors: pairs with strong blue err together, pale ones independently, orange "
        f"ones the other way. The {len(d['names'])} specialists amount to {d['independent']:.1f} independent ones."
    )


def importance(summary: Summary) -> str:
    i = summary["importance"]
    if not i["columns"]:
        return f"Not computed: {i['why']}."
    first = i["columns"][0]
    found = f"{name(first['column'])} matters most" if first["mean"] > 2 * first["error"] else "none does beyond noise"
    return (
        f"How much the {summary['answer']['loss_name']} of the blend rises when a column is shuffled, on {i['rows']} "
        f"rows that were given as rows the model has not seen: {found}. Lines are 95 % intervals. Columns that repeat "
        "each other share their importance, so a short bar does not prove a column useless."
    )


def learning(summary: Summary) -> str:
    """Whether more rows would help, as far as the curve tells."""
    found = summary["learning"]
    if not found["points"]:
        return f"Whether more rows would help was not computed: {found['why']}."
    fall, forecast = found["fall"], found["forecast"]
    size, reach = percent(abs(fall["value"])), percent((fall["high"] - fall["low"]) / 2)
    way = "fell" if fall["value"] >= 0 else "rose"
    if fall["high"] < LITTLE:
        said = "more rows of this kind promise little"
    elif fall["low"] <= 0:
        said = "within noise, so whether more rows would help cannot be told"
    elif forecast is None:
        said = "more rows would help; how much cannot be told, since the fall does not slow down yet"
    else:
        span = f"95 % interval {percent(forecast['low'])} to {percent(forecast['high'])}"
        said = f"if that goes on as a power law, twice the rows might bring {percent(forecast['value'])} more ({span})"
    return (
        f"Held-out loss of {_listed(found['specialists'])}, fitted on a part of the rows and on all; lines are 95 % "
        f"intervals. From half to all rows it {way} by {size} ± {reach}: {said}."
    )


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"a blend of {', '.join(names[:-1])} and {names[-1]}"


def table(summary: Summary) -> str:
    t = summary["table"]
    missing = f"{t['missing']:,} values are missing" if t["missing"] else "no value is missing"
    gone = len(t["dropped"])
    dropped = f"; {gone} of the columns {'was' if gone == 1 else 'were'} dropped" if gone else ""
    return f"{t['rows']:,} rows and {t['columns']:,} columns, {missing}{dropped}."


def aim(summary: Summary) -> str:
    """How the blend compares by the metric that was asked for, and how it came to its weights and labels."""
    a = summary["aim"]
    parts = [a["verdict"], a["weights"]] if a["weights"] else []
    if a["threshold"] is not None:
        second = name(summary["classes"][1])
        parts.append(f"{second} is answered from a probability of {a['threshold']:.3g} on, {a['decision']}")
    elif a["decision"]:
        parts.append(f"labels are those of {a['decision']}")
    return " ".join(f"{part[:1].upper()}{part[1:]}." for part in parts)
