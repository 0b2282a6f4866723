"""The scheduler hands out tasks in the right order and says why one is not begun."""

import time

from softlearning.execution.scheduler import Scheduler
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
    assert names(Scheduler(some, in_a_minute())) == ["b", "b", "c", "c", "a", "a"]


def test_with_equal_ranks_the_cheapest_specialist_comes_first():
    some = [Task("a", 0, grown, (1,), cost=2), Task("b", 0, grown, (1,), cost=1)]
    assert names(Scheduler(some, in_a_minute())) == ["b", "a"]


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
    scheduler = Scheduler(tasks("a"), time.monotonic() - 1)
    assert scheduler.take() is None
    assert scheduler.answers() == [Failure("a", 0, "the time limit was reached", 0.0, kind="skipped")]


def test_without_a_deadline_there_is_no_end():
    assert Scheduler(tasks("a")).remaining() == float("inf")
    assert Scheduler(tasks("a"), 0.0).remaining() < 0


def test_the_reserve_is_kept_for_what_follows():
    assert Scheduler(tasks("a"), in_a_minute(), reserve=59.999).take() is None
    assert Scheduler(tasks("a"), in_a_minute(), reserve=1).take() is not None


def test_each_specialist_that_is_begun_takes_its_part_of_what_follows():
    scheduler = Scheduler(tasks("a", "b", "c"), in_a_minute(), each=10)
    left = []
    while (job := scheduler.take()) is not None:
        left.append(round(scheduler.remaining()))
        scheduler.accept(job.position, done(job) if job.task.specialist != "a" else job.task.failed("error", "no"))
    assert left == [50, 50, 40]  # what failed takes nothing
    assert round(Scheduler(tasks("a"), in_a_minute(), each=1000).remaining()) == 60
    crowded = Scheduler(tasks("a"), in_a_minute(), each=1000)
    crowded.take()
    assert round(crowded.remaining()) == 30  # half of the time is for tasks in any case


def test_a_specialist_that_cannot_be_finished_is_skipped_whole():
    some = tasks("quick", folds=2, cost=0.1) + tasks("slow", folds=2, cost=1000)
    scheduler = Scheduler(some, in_a_minute())
    assert names(scheduler) == ["quick", "quick"]
    skipped = [a for a in scheduler.answers() if isinstance(a, Failure)]
    assert {(f.specialist, f.kind) for f in skipped} == {("slow", "skipped")}
    assert len(skipped) == 2


def test_a_task_that_hangs_leaves_time_for_those_that_wait():
    job = Scheduler(tasks("a", "b"), in_a_minute()).take()
    assert 0 < job.seconds <= 30
    assert Scheduler([Task("a", 0, grown, (1,), limit=2.0)]).take().seconds == 2.0
    assert Scheduler(tasks("a")).take().seconds is None


def test_memory_is_divided_among_the_workers():
    scheduler = Scheduler(tasks("a", "b"), memory=1000)
    scheduler.set_workers(4)
    assert scheduler.take().memory == 250


def test_a_lost_task_waits_once_more():
    scheduler = Scheduler(tasks("a"))
    job = scheduler.take()
    assert scheduler.take() is None
    scheduler.again([job.position])
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
    scheduler = Scheduler(tasks, time.monotonic() + 100)
    taken = {}
    while (job := scheduler.take()) is not None:
        taken[job.task.specialist, job.task.fold] = job.task.args[0]
    assert taken["small", 0] == 1.0
    assert taken["large", 0] == taken["large", 1] < 0.5
    assert scheduler.tasks[0].args == (taken["large", 0],)  # what a checkpoint knows it by


def test_a_task_that_was_ended_by_the_clock_tells_how_slow_the_machine_is():
    scheduler = Scheduler(tasks("a", "b", cost=1.0), time.monotonic() + 100)
    job = scheduler.take()
    before = scheduler.plan.seconds("b")
    scheduler.accept(job.position, job.task.failed("timeout", "ended", seconds=10.0))
    assert scheduler.plan.seconds("b") == 10 * before
