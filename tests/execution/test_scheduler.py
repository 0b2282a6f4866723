"""The scheduler hands out tasks in the right order, and under a time limit what is begun can be finished."""

import time

import pytest

from softlearning.execution.scheduler import LEAST, PORTION, Plan, Scheduler, order
from softlearning.execution.tasks import Failure, Outcome, Task
from tests.execution.calls import grown


def tasks(*names, folds=1, **settings):
    return [Task(name, fold, grown, (fold,), **settings) for fold in range(folds) for name in names]


def done(job, seconds=0.1):
    return Outcome(job.task.specialist, job.task.fold, {}, seconds)


def names(scheduler):
    """The specialists of all jobs, each finished at once."""
    taken = []
    while (job := scheduler.take()) is not None:
        taken.append(job.task.specialist)
        scheduler.accept(job.position, done(job))
    return taken


def in_a_minute():
    return time.monotonic() + 60


def test_the_costliest_come_first_and_equals_in_their_order():
    some = [Task("a", 0, grown, (1,), cost=1), Task("b", 0, grown, (1,), cost=3), Task("c", 0, grown, (1,), cost=1)]
    assert names(Scheduler(some)) == ["b", "a", "c"]


def test_under_a_deadline_whole_specialists_follow_each_other_by_rank():
    some = [Task(n, fold, grown, (1,), rank=r) for fold in range(2) for n, r in (("a", 2), ("b", 0), ("c", 1))]
    assert names(Scheduler(some, deadline=in_a_minute())) == ["b", "b", "c", "c", "a", "a"]


def test_with_equal_ranks_the_cheapest_specialist_comes_first():
    some = [Task("a", 0, grown, (1,), cost=2), Task("b", 0, grown, (1,), cost=1)]
    assert names(Scheduler(some, deadline=in_a_minute())) == ["b", "a"]


def test_after_one_failed_fold_the_others_of_that_specialist_are_cancelled():
    scheduler = Scheduler(tasks("a", folds=3))
    job = scheduler.take()
    scheduler.accept(job.position, job.task.failed("crash", "gone"))
    assert scheduler.take() is None
    assert [(f.kind, f.error) for f in scheduler.answers()] == [
        ("crash", "gone"),
        ("cancelled", "fold 0 failed"),
        ("cancelled", "fold 0 failed"),
    ]


def test_what_is_not_begun_at_the_deadline_is_skipped():
    scheduler = Scheduler(tasks("a"), deadline=time.monotonic() - 1)
    assert scheduler.take() is None
    assert scheduler.answers() == [Failure("a", 0, "the time limit was reached", 0.0, kind="skipped")]


def test_without_a_deadline_there_is_no_end():
    assert Scheduler(tasks("a")).remaining() == float("inf")
    assert Scheduler(tasks("a"), deadline=0.0).remaining() < 0


def test_the_reserve_is_kept_for_what_follows():
    assert Scheduler(tasks("a"), deadline=in_a_minute(), reserve=59.999).take() is None
    assert Scheduler(tasks("a"), deadline=in_a_minute(), reserve=1).take() is not None


def test_each_specialist_that_is_begun_takes_its_part_of_what_follows():
    scheduler = Scheduler(tasks("a", "b", "c"), deadline=in_a_minute(), each=10)
    left = []
    while (job := scheduler.take()) is not None:
        left.append(round(scheduler.remaining()))
        scheduler.accept(job.position, done(job) if job.task.specialist != "a" else job.task.failed("error", "no"))
    assert left == [50, 50, 40]  # what failed takes nothing
    assert round(Scheduler(tasks("a"), deadline=in_a_minute(), each=1000).remaining()) == 60
    crowded = Scheduler(tasks("a"), deadline=in_a_minute(), each=1000)
    crowded.take()
    assert round(crowded.remaining()) == 30  # half of the time is for tasks in any case
    crowded.deadline -= 20  # which is then spent, and what is kept stays as it is
    assert round(crowded.remaining()) == 10


def test_a_specialist_that_cannot_be_finished_is_skipped_whole():
    some = tasks("quick", folds=2, cost=0.1) + tasks("slow", folds=2, cost=1000)
    scheduler = Scheduler(some, deadline=in_a_minute())
    assert names(scheduler) == ["quick", "quick"]
    skipped = [a for a in scheduler.answers() if isinstance(a, Failure)]
    assert {(f.specialist, f.kind) for f in skipped} == {("slow", "skipped")}
    assert len(skipped) == 2


def test_a_task_that_hangs_leaves_time_for_those_that_wait():
    job = Scheduler(tasks("a", "b"), deadline=in_a_minute()).take()
    assert 0 < job.seconds <= 30
    assert Scheduler([Task("a", 0, grown, (1,), limit=2.0)]).take().seconds == 2.0
    assert Scheduler(tasks("a")).take().seconds == float("inf")


def test_memory_is_divided_among_the_workers():
    scheduler = Scheduler(tasks("a", "b"), memory=1000)
    scheduler.plan.workers = 4
    assert scheduler.take().memory == 250


def test_a_lost_task_waits_once_more():
    scheduler = Scheduler(tasks("a"))
    job = scheduler.take()
    assert scheduler.take() is None
    scheduler.waiting += [job.position]
    assert scheduler.take().position == job.position


class Kept(dict):
    def get(self, task):
        return super().get((task.specialist, task.fold))

    def put(self, task, value):
        self[task.specialist, task.fold] = value


def test_what_is_stored_is_not_begun_and_what_finishes_is_stored():
    store, events = Kept({("a", 0): {"x": 1}}), []
    scheduler = Scheduler(tasks("a", "b"), store=store, watch=lambda e: events.append((e.kind, e.specialist)))
    assert names(scheduler) == ["b"]
    assert scheduler.answers()[0].value == {"x": 1}
    assert store["b", 0] == {}
    assert events == [("restored", "a"), ("waiting", "b"), ("started", "b"), ("finished", "b")]


def test_who_watches_may_stop_the_rest():
    scheduler = Scheduler(tasks("a", "b"), watch=lambda e: e.kind == "finished")
    assert names(scheduler) == ["a"]
    assert (scheduler.answers()[1].kind, scheduler.answers()[1].error) == ("cancelled", "the fit was asked to stop")


def test_where_time_is_short_a_task_that_can_be_smaller_is():
    tasks = [Task("large", fold, grown, (1.0,), cost=100.0, shrink=lambda share: (share,)) for fold in range(2)]
    tasks += [Task("small", 0, grown, (1.0,), cost=0.1)]
    scheduler = Scheduler(tasks, deadline=time.monotonic() + 100)
    taken = {}
    while (job := scheduler.take()) is not None:
        taken[job.task.specialist, job.task.fold] = job.task.args[0]
    assert taken["small", 0] == 1.0
    assert taken["large", 0] == taken["large", 1] < 0.5
    assert scheduler.tasks[0].args == (taken["large", 0],)  # what a checkpoint knows it by


def test_a_task_that_was_ended_by_the_clock_tells_how_slow_the_machine_is():
    scheduler = Scheduler(tasks("a", "b", cost=1.0), deadline=time.monotonic() + 100)
    job = scheduler.take()
    before = scheduler.plan.seconds("b")
    scheduler.accept(job.position, job.task.failed("timeout", "ended", seconds=10.0))
    assert scheduler.plan.seconds("b") == 10 * before


# ------------------------------------------------------------------------------------------------------------ the plan


def plan(workers=1, refits=1, folds=3, **costs):
    return Plan(costs, dict.fromkeys(costs, folds), workers, refits)


def test_the_smallest_rank_comes_first_and_among_equals_the_cheapest():
    costs = {"forest": 40, "ridge": 50, "tree": 60}
    assert order(costs) == ["forest", "ridge", "tree"]
    assert order(costs, {"tree": 0, "ridge": 1, "forest": 1}) == ["forest", "tree", "ridge"]
    assert order({}) == []


def test_the_cheapest_of_the_first_few_leads_and_the_others_keep_their_order():
    """Soon something is finished, and it corrects what the costly ones are expected to take."""
    costs = {"boosting": 10, "linear": 0.5, "trees": 9, "pairs": 12, "baseline": 0.001}
    ranks = {name: rank for rank, name in enumerate(costs)}
    assert order(costs, ranks) == ["linear", "boosting", "trees", "pairs", "baseline"]


def test_on_a_slow_machine_the_first_specialist_is_done_soon_and_the_second_is_cut_to_size():
    """Everything takes four times as long as expected: what is costly learns from fewer rows instead of being lost."""
    p, limit, clock = plan(boosting=7.2, linear=0.6, workers=2), 60.0, 0.0
    for name in order(p.costs, {"boosting": 0, "linear": 1}):
        share = p.share(name, limit - clock)
        for _ in range(3):
            assert p.refusal(name, limit - clock) == ""
            p.begun.add(name)
            seconds = 4 * share * p.costs[name]
            assert seconds <= p.allowance(name, limit - clock)
            p.note(name, seconds)
            clock += seconds / 2
        if name == "linear":
            assert clock <= limit / 10
    assert 0.2 < p.shares["boosting"] < 1
    assert clock + p.owed("") <= limit


def test_no_task_is_promised_fewer_seconds_than_it_can_be_cut_to():
    p = Plan({"wide": 10.0, "other": 1.0}, {"wide": 1, "other": 1}, least={"wide": 0.4})
    assert p.share("wide", remaining=8) == 0.4
    assert p.refusal("wide", remaining=8) == ""
    assert p.refusal("wide", remaining=3.9) == "needs about 4 s, 3.9 s remain"


def test_the_order_does_not_depend_on_the_order_of_the_library():
    assert order({"b": 1, "a": 1}) == order({"a": 1, "b": 1}) == ["a", "b"]


def test_while_nothing_is_measured_an_expectation_may_be_five_times_too_long():
    assert plan(a=5, refits=0, folds=1).refusal("a", remaining=1) == ""
    assert plan(a=6, refits=0, folds=1).refusal("a", remaining=1) == "needs about 6 s, 1 s remain"


def test_one_slow_task_does_not_spoil_all_expectations():
    p = plan(a=1, b=1, c=1, d=10)
    for name, seconds in (("a", 2.0), ("b", 2.2), ("c", 500.0)):
        p.note(name, seconds)
    assert p.seconds("d") == 22.0


def test_seconds_are_corrected_by_what_others_took_and_then_known_from_own_folds():
    p = plan(a=1, b=10)
    p.note("a", 0.5)
    assert p.seconds("b") == 5.0
    p.note("b", 2.0)
    assert p.seconds("b") == 2.0


@pytest.mark.parametrize(("remaining", "reason"), [(9, "needs about 20 s, 9 s remain"), (10, ""), (100, "")])
def test_a_specialist_that_cannot_be_finished_is_skipped_with_its_seconds(remaining, reason):
    """Three folds and a refit of about 5 s each; the guess may be wrong by 2."""
    p = plan(a=1, b=10)
    p.note("a", 0.5)
    assert p.refusal("b", remaining) == reason


def test_when_its_own_seconds_are_known_there_is_no_leeway():
    p = plan(a=1)
    p.note("a", 5.0)
    assert p.refusal("a", remaining=14.9) == "needs about 15 s, 15 s remain"
    assert p.refusal("a", remaining=15.1) == ""


def test_the_folds_and_refits_of_those_under_way_are_owed_first():
    p = plan(a=1, b=1)
    p.begun.add("a")
    p.note("a", 1.0)
    assert p.owed("b") == 3.0
    assert p.refusal("b", remaining=4.9) != ""
    assert p.refusal("b", remaining=5.1) == ""
    p.given_up.add("a")
    assert p.refusal("b", remaining=2.1) == ""


def test_more_workers_finish_more():
    one, two = plan(workers=1, a=1, b=8), plan(workers=2, a=1, b=8)
    for p in (one, two):
        p.note("a", 1.0)
    assert one.needs("b") == 32.0
    assert two.needs("b") == 24.0


@pytest.mark.parametrize("folds", [3, 10])
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_task_that_hangs_leaves_time_for_the_others(folds, workers):
    p = plan(workers=workers, folds=folds, a=1, hung=1)
    assert p.allowance("hung", remaining=60.0) <= 45.0
    assert p.allowance("hung", remaining=60.0) >= 60.0 / (folds + 1)


def test_by_simulation_what_is_begun_ends_in_time(rng):
    """Random libraries with costs that are wrong by up to 2: at most one specialist is begun in vain at a time."""
    for _ in range(200):
        names = [f"s{i}" for i in range(rng.integers(1, 12))]
        costs = {name: float(10 ** rng.uniform(-3, 0)) for name in names}
        true = {name: costs[name] * 2 ** rng.uniform(-1, 1) for name in names}
        limit = float(10 ** rng.uniform(-1, 2))
        p = Plan(costs, dict.fromkeys(names, 5), refits=1)
        clock = 0.0
        for name in order(costs):
            for _ in range(5):
                if p.refusal(name, limit - clock):
                    p.given_up.add(name)
                    break
                p.begun.add(name)
                spent = min(true[name], p.allowance(name, limit - clock))
                clock += spent
                if spent < true[name]:
                    p.given_up.add(name)
                    break
                p.note(name, spent)
        complete = [name for name in names if len(p.finished.get(name, ())) == 5]
        assert clock + sum(true[name] for name in complete) <= limit * (1 + 1e-9) or len(complete) == 0
        if limit > 20 * sum(true.values()):
            assert sorted(complete) == sorted(names)


def test_a_specialist_takes_its_portion_of_the_time_while_others_wait_and_all_of_it_at_the_end():
    p = plan(refits=0, folds=2, large=100.0, small=1.0)
    assert p.share("large", remaining=80) == pytest.approx(PORTION * 80 / 2 / 100)
    assert p.seconds("large") == pytest.approx(10)
    p.begun = {"large"}
    assert p.share("large", remaining=8) == pytest.approx(0.1)  # the same in all folds
    assert p.share("small", remaining=80) == 1.0


def test_what_others_took_corrects_the_portion():
    p = plan(refits=0, folds=1, a=1.0, large=100.0)
    p.begun = {"a"}
    p.note("a", 2.0)
    assert p.share("large", remaining=100) == pytest.approx(1 / 1.5 / 2, rel=0.01)  # twice as slow, and a margin


def test_a_specialist_gets_a_tenth_of_what_it_wants_beyond_its_portion_or_is_skipped():
    p = plan(refits=0, folds=1, large=100.0, small=1.0)
    assert p.share("large", remaining=30) == pytest.approx(LEAST)
    assert p.refusal("large", remaining=30) == ""
    p = plan(refits=0, folds=1, large=100.0, small=1.0)
    assert p.share("large", remaining=5) == pytest.approx(LEAST)
    assert p.refusal("large", remaining=5) == "needs about 10 s, 5 s remain"


def test_nobody_is_owed_more_than_the_time_after_which_it_is_ended():
    p = plan(refits=0, folds=1, slow=1.0, other=1.0)
    p.begun = {"slow"}
    p.allowance("slow", remaining=10)
    p.costs["slow"] = 1000.0
    assert p.owed("other") == pytest.approx(10)
