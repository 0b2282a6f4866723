"""What the figures show, in sentences made from their numbers."""

from __future__ import annotations

from typing import Any

from softlearning.report.svg import clean, short

Summary = dict[str, Any]


def name(text: str) -> str:
    """A name from the data, in quotes, not too long for a sentence."""
    return f"“{clean(text, 60)}”"


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %".replace("-", "−")


def score(value: float | None, summary: Summary) -> str:
    """A share in percent, R² with three digits."""
    if value is None:
        return "unknown"
    return percent(value) if summary["classes"] else f"{value:.3f}".replace("-", "−")


def headline(summary: Summary) -> str:
    a, trivial = summary["answer"], summary["comparisons"][-1]
    interval = f"95 % interval {score(a['low'], summary)} to {score(a['high'], summary)}"
    if summary["classes"]:
        return (
            f"On rows it has not seen, the blend names the right one of {len(summary['classes'])} classes in "
            f"{percent(a['score'])} of cases ({interval}); always naming the commonest class would be right in "
            f"{percent(trivial['score'])}."
        )
    if a["score"] is None:
        return "The target never varies, so there is nothing to explain."
    return (
        f"On rows it has not seen, the blend explains {percent(a['score'])} of the variance of the target "
        f"(R² {score(a['score'], summary)}, {interval})."
    )


def against_best(summary: Summary) -> str:
    """Whether blending was worth it, said plainly also when it was not."""
    best = summary["comparisons"][0]
    rival = best["name"].removeprefix("best single specialist in hindsight (").removesuffix(")")
    size = f"{percent(abs(best['share']))} {'lower' if best['gain'] >= 0 else 'higher'} loss"
    if best["verdict"] == "better":
        return (
            f"Blending pays: {size} than {rival}, the best single specialist in hindsight, more than chance explains."
        )
    if best["verdict"] == "worse":
        return f"Blending does not pay here: {size} than {rival} alone. Consider that specialist by itself."
    return f"No clear difference from {rival}, the best single specialist in hindsight: {size}, within chance."


def certainty(summary: Summary) -> str:
    c, unique = summary["certificate"], ""
    if c["gap"] <= 1e-6 * max(abs(c["objective"]), 1e-300):
        proof = "The weights are proved optimal: no other weights have a lower cross-validated loss"
        unique = "; they are the only optimum" if c["unique"] else "; other weights may do as well"
    elif c["rule"] == "guarded":
        proof = (
            f"The weights stand back from the optimum (by at most {short(c['gap'])} of cross-validated loss), because "
            "held-out folds say that the optimum overfits"
        )
    else:
        proof = f"Other weights could lower the cross-validated loss by at most {short(c['gap'])}"
    return f"{proof}{unique}. They amount to {c['effective']:.1f} equally weighted specialists."


def families(summary: Summary) -> str:
    top = summary["families"][0]
    return f"Weight by family of algorithms: {top['family']} models carry {percent(top['weight'], 0)} of the blend."


def weights(summary: Summary) -> str:
    sure = [w for w in summary["weights"] if w["low"] > 0]
    return (
        "Bars are the weights, lines their 95 % intervals when the rows are drawn again. "
        f"{len(sure)} of {len(summary['weights'])} specialists keep some weight nearly always"
        + (
            f" ({', '.join(w['specialist'] for w in sure[:4])})."
            if sure
            else ": which ones carry it depends on chance."
        )
    )


def stated(summary: Summary) -> str:
    """What the probabilities of the calibration curve are about."""
    return f"that a row is {name(summary['classes'][1])}" if len(summary["classes"]) == 2 else "of its first choice"


def calibration(summary: Summary) -> str:
    return (
        f"Dots compare the probability {stated(summary)}, as stated, with how often it was true; on the dashed line "
        f"both agree. They differ by {percent(summary['calibration']['error'])} on average."
    )


def boldness(summary: Summary) -> str:
    counts = summary["calibration"]["counts"]
    sure = (sum(counts[-2:]) + (sum(counts[:2]) if len(summary["classes"]) == 2 else 0)) / max(sum(counts), 1)
    return (
        f"How many rows were given which probability {stated(summary)}. For {percent(sure, 0)} of them the blend is at "
        "least 90 % sure."
    )


def confusion(summary: Summary) -> str:
    c = summary["confusion"]
    some = (
        f" The {len(c['classes'])} classes with most errors are shown." if len(c["classes"]) < c["all_classes"] else ""
    )
    return (
        f"Rows are the true classes, columns the answers, numbers count rows: {c['wrong']:,} of {c['rows']:,} rows lie "
        f"off the diagonal and are wrong.{some}"
    )


def scatter(summary: Summary) -> str:
    r = summary["residuals"]
    return (
        f"Each dot is a row: predicted against true value; on the dashed line the prediction is exact. "
        f"Half of the predictions are off by less than {short(r['median'])}."
    )


def histogram(summary: Summary) -> str:
    r = summary["residuals"]
    return (
        f"How many rows have which error (true minus predicted). Their typical size is {short(r['rmse'])} (root mean "
        f"square); the average, {short(r['bias'])}, would be far from zero if predictions were too low or too high."
    )


def doubt(summary: Summary) -> str:
    first, last = summary["doubt"]["bins"][0]["error"], summary["doubt"]["bins"][-1]["error"]
    if summary["classes"]:
        ends = f"{percent(first)} are wrong, in the last {percent(last)}"
    else:
        ends = f"the mean absolute error is {short(first)}, in the last {short(last)}"
    verdict = (
        "so disagreement warns of errors"
        if last > 1.5 * first + 1e-12
        else "so disagreement says little about errors here"
    )
    return f"Rows in ten equal groups by how much the specialists disagree: in the first {ends}, {verdict}."


def risk_coverage(summary: Summary) -> str:
    d = summary["doubt"]
    half = min(range(len(d["coverage"])), key=lambda i: abs(d["coverage"][i] - 0.5))
    show, what = (percent, "an error rate") if summary["classes"] else (short, "a mean absolute error")
    return (
        f"Answering only the {percent(d['coverage'][half], 0)} of rows with the least disagreement gives {what} of "
        f"{show(d['risk'][half])} instead of {show(d['all'])} on all rows."
    )


def coverage(summary: Summary) -> str:
    line = min(summary["coverage"], key=lambda c: abs(c["wanted"] - 0.9))
    what = "sets of classes" if summary["classes"] else "intervals"
    size = ""
    if line["size"] is not None:
        size = f", with {line['size']:.2f} classes a set" if summary["classes"] else f", {short(line['size'])} wide"
    more = summary["classes"] and line["low"] > line["wanted"]
    return (
        f"{what.capitalize()} that promise to hold the truth in {percent(line['wanted'], 0)} of cases held it in "
        f"{percent(line['observed'])} on average{size}. On the dashed line promise and truth agree."
        + (" More is kept than promised, because a set always holds the likeliest class." if more else "")
    )


def diversity(summary: Summary) -> str:
    d = summary["diversity"]
    return (
        "Correlation of the specialists' errors: pairs with strong blue err together, pale ones independently, orange "
        f"ones the other way. The {len(d['names'])} specialists amount to {d['opinions']:.1f} independent opinions."
    )


def importance(summary: Summary) -> str:
    i = summary["importance"]
    if not i["columns"]:
        return f"Not computed: {i['why']}."
    return (
        f"How much the squared error of the blend rises when a column is shuffled, on {i['rows']} training rows: "
        f"{name(i['columns'][0]['column'])} matters most. Columns that repeat each other share their importance, so a "
        "short bar does not prove a column useless."
    )


def table(summary: Summary) -> str:
    t = summary["table"]
    gaps = f", {t['missing']:,} cells are empty" if t["missing"] else ", no cell is empty"
    dropped = f"; {len(t['dropped'])} of the columns were left out" if t["dropped"] else ""
    return f"{t['rows']:,} rows and {t['columns']:,} columns{gaps}{dropped}."
