"""Engines carry tasks; whatever becomes of one, the others are carried on."""

import contextlib
import multiprocessing
import os
import signal
import threading
import time
import warnings

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from softlearning.execution import Failure, Here, Joblib, Outcome, Processes, Task, worker
from softlearning.execution import engines as module
from softlearning.library import Shape, every_row
from tests.execution.calls import die, double, eat, grown, hold_everything, nap, refuse, run, who
from tests.execution.faults import processes_left

ENGINES = {"here": Here, "one process": Processes, "two processes": lambda: Processes(2)}


@pytest.fixture(params=ENGINES)
def engine(request):
    with ENGINES[request.param]() as made:
        yield made


@pytest.fixture
def processes():
    with Processes(2) as made:
        yield made


def test_outcomes_come_in_the_order_of_the_tasks_whatever_their_cost(engine, rng):
    X = rng.normal(size=(20, 3))
    handle = engine.share(X)
    tasks = [Task("a", fold, double, (handle, np.arange(fold + 1)), cost=fold % 3) for fold in range(7)]
    outcomes = run(tasks, engine=engine)
    assert [o.fold for o in outcomes] == list(range(7))
    for fold, outcome in enumerate(outcomes):
        np.testing.assert_array_equal(outcome.value["prediction"], 2 * X[: fold + 1])


def test_a_task_that_raises_fails_alone_and_says_where(engine):
    outcomes = run([Task("a", 0, refuse, ()), Task("b", 0, grown, (1,))], engine=engine)
    assert isinstance(outcomes[1], Outcome)
    assert (outcomes[0].kind, outcomes[0].error) == ("error", "ValueError: no")
    assert "refuse" in outcomes[0].traceback


def test_a_task_that_kills_its_process_kills_nothing_else(processes):
    tasks = [Task("killer", 0, die, ()), *(Task("a", i, grown, (i,)) for i in range(5))]
    outcomes = run(tasks, engine=processes)
    assert (outcomes[0].kind, outcomes[0].error) == ("crash", "the process was ended by SIGKILL")
    assert [o.value["number"] for o in outcomes[1:]] == list(range(5))
    assert processes_left() == []


def test_a_task_that_holds_the_interpreter_is_ended_and_the_others_get_their_turn():
    tasks = [Task("hung", 0, hold_everything, (), limit=1.0), Task("a", 0, grown, (1,))]
    with Processes() as one:
        hung, other = run(tasks, engine=one)
    assert (hung.kind, hung.error) == ("timeout", "TimeoutError: ended after 1.0 s")
    assert "hold_everything" in hung.traceback
    assert other.value == {"number": 1.0}


def test_a_task_that_wants_too_much_memory_fails_alone():
    tasks = [Task("greedy", 0, eat, (2,)), Task("modest", 0, eat, (0.01,))]
    greedy, modest = run(tasks, memory_limit="1 GiB")
    assert greedy.kind == "memory"
    assert greedy.error.startswith("MemoryError")
    assert isinstance(modest, Outcome)


def grow_slowly():
    kept = []
    while True:
        kept.append(np.ones(2**21))  # 16 MiB
        time.sleep(0.02)


def test_where_the_system_sets_no_cap_memory_is_watched_and_that_is_said_once(monkeypatch):
    monkeypatch.setattr(worker, "CAPPED", False)
    module.say_once.cache_clear()
    tasks = [Task("greedy", 0, grow_slowly, ()), Task("modest", 0, eat, (0.01,))]
    monkeypatch.setenv("SOFTLEARNING_START", "spawn")  # the server has the cap
    monkeypatch.setattr("softlearning.execution.pool.launch", launch_without_cap)
    with pytest.warns(UserWarning, match="sets no cap on the memory") as seen:
        greedy, modest = run(tasks, memory_limit=300 * 2**20)
    assert len(seen) == 1
    assert (greedy.kind, greedy.error) == ("memory", f"MemoryError: grew by more than {300 * 2**20} bytes")
    assert isinstance(modest, Outcome)
    assert processes_left() == []


def launch_without_cap(target, *args):
    return LAUNCH(uncapped, target, *args)


LAUNCH = module.pool.launch


def uncapped(target, *args):
    worker.CAPPED = False
    target(*args)


def test_a_task_that_needs_more_than_its_share_of_memory_gets_all_of_it_alone():
    outcomes = run([Task(str(i), 0, eat, (0.6,)) for i in range(2)], memory_limit=2**30, n_jobs=2)
    assert all(isinstance(o, Outcome) for o in outcomes)


# ------------------------------------------------------------------------------------------ who shares a process


def pids(engine, **how):
    """The processes of four tasks, one after another."""
    outcomes = run([Task("a", i, who, (), **how) for i in range(4)], engine=engine)
    return [o.value["pid"] for o in outcomes]


def test_trusted_tasks_share_a_process_and_others_have_one_each():
    with Processes() as engine:
        assert len(set(pids(engine, trusted=True, cost=1000))) == 1
        assert len(set(pids(engine, cost=1000))) == 4


def test_a_process_that_has_ended_or_grown_is_given_no_other_task(monkeypatch):
    with Processes() as engine:
        first = pids(engine, trusted=True, cost=1000)[0]
        os.kill(int(first), signal.SIGKILL)
        engine.idle[0].connection.poll(60)  # until that is known
        second = pids(engine, trusted=True, cost=1000)[0]
        monkeypatch.setattr(module.pool, "LARGE", 0)
        third = pids(engine, trusted=True, cost=1000)
    assert len({first, second, *third}) == 6
    assert processes_left() == []


def test_only_short_trusted_tasks_run_here_when_there_is_a_limit():
    """Nobody could end them here: what is long, has a limit of its own or is not ours goes to a process."""
    soon, me = time.monotonic() + 1000, float(os.getpid())
    cases = [{"trusted": True, "cost": 0.5}, {"trusted": True, "cost": 1.1}, {"cost": 0.5}]
    cases += [{"trusted": True, "cost": 0.5, "limit": 100.0}]
    outcomes = [run([Task("a", 0, who, (), **case)], deadline=soon)[0] for case in cases]
    assert [o.value["pid"] == me for o in outcomes] == [True, False, False, False]
    [capped] = run([Task("a", 0, who, (), trusted=True, cost=0.5)], memory_limit=2**30)
    assert capped.value["pid"] != me
    [short] = run([Task("a", 0, who, (), trusted=True, cost=0.5)], deadline=time.monotonic() + 20)
    assert short.value["pid"] != me  # more than a fiftieth of what remains


# ------------------------------------------------------------------------------------------- what a task may touch


def meddle():
    os.chdir("/")
    np.random.seed(1)  # noqa: NPY002
    warnings.simplefilter("error")
    threadpool_limits(2)
    return {}


def test_a_task_in_a_process_leaves_folder_seed_warnings_and_threads_as_they_were(processes):
    def surroundings():
        threads = [library["num_threads"] for library in threadpool_info()]
        return os.getcwd(), np.random.get_state()[1].tolist(), list(warnings.filters), threads  # noqa: NPY002

    before = surroundings()
    [outcome] = run([Task("a", 0, meddle, ())], engine=processes)
    assert isinstance(outcome, Outcome)
    assert surroundings() == before


def test_a_task_in_this_process_leaves_the_generator_and_warnings_of_other_threads_alone():
    """Another thread draws while tasks come and go: no draw is repeated, and its warnings are heard."""
    drawn, stop = [], threading.Event()

    def draw():
        while not stop.is_set():
            drawn.append(np.random.random())  # noqa: NPY002
            time.sleep(0.001)

    other = threading.Thread(target=draw)
    other.start()
    run([Task("a", i, nap, (0.01,)) for i in range(10)], engine=Here())
    stop.set()
    other.join()
    assert len(drawn) > 5
    assert len(set(drawn)) == len(drawn)


def global_draw():
    return {"draw": np.random.random(3)}  # noqa: NPY002


def test_global_draws_of_a_task_in_a_process_are_the_same_in_every_run():
    runs = []
    for _ in range(2):
        with Processes() as engine:
            runs.append(run([Task("a", fold, global_draw, ()) for fold in range(2)], engine=engine))
    first, second = ([o.value["draw"] for o in outcomes] for outcomes in runs)
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first[0], first[1])


def blas_threads():
    return {"threads": float(max(library["num_threads"] for library in threadpool_info()))}


def test_a_task_runs_on_one_thread(engine):
    [outcome] = run([Task("a", 0, blas_threads, ())], engine=engine)
    assert outcome.value["threads"] == 1


def threads_of_a_fit(row, task):
    """How many threads a specialist of the library starts."""
    X = np.random.default_rng(0).normal(size=(300, 5))
    y = X[:, 0] > 0 if task == "classification" else X[:, 0]
    before = len(os.listdir("/proc/self/task"))
    row.make(Shape(task, 300, 5, classes=2, rarest=100)).fit(X, y).predict(X)
    return {"threads": float(len(os.listdir("/proc/self/task")) - before)}


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_no_row_of_the_library_takes_more_cores_than_its_own(task):
    """Each on the one thread it has; CatBoost starts one or two more, which sleep."""
    names = ("random_forest", "hist_gradient_boosting", "lightgbm", "catboost", "mlp_small")
    outcomes = run([Task(row.name, 0, threads_of_a_fit, (row, task)) for row in every_row(task)[names]], isolate=True)
    threads = {o.specialist: o.value["threads"] for o in outcomes}
    assert threads.pop("catboost") <= 2
    assert set(threads.values()) == {0.0}


# ------------------------------------------------------------------------------------------------------ nothing stays


def test_an_interrupt_leaves_no_process_behind(processes):
    def interrupt(event):
        if event.kind == "finished":
            raise KeyboardInterrupt

    tasks = [Task("slow", 0, time.sleep, (1000,), cost=2), Task("a", 0, grown, (1,))]
    with contextlib.suppress(KeyboardInterrupt), Processes(2) as engine:
        run(tasks, engine=engine, watch=interrupt)
    assert processes_left() == []


def leave_a_child():
    if os.fork() == 0:
        time.sleep(1000)
    return {}


def test_a_child_that_a_task_leaves_running_is_ended_with_it(processes):
    [outcome] = run([Task("a", 0, leave_a_child, ())], engine=processes)
    assert isinstance(outcome, Outcome)
    assert processes_left() == []


def kill_the_server_once(marker):
    if not os.path.exists(marker):
        open(marker, "w").close()
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(1000)
    return {}


def test_tasks_are_begun_again_when_the_server_dies(tmp_path):
    tasks = [Task("a", 0, kill_the_server_once, (str(tmp_path / "marker"),)), Task("b", 0, grown, (1,))]
    assert all(isinstance(o, Outcome) for o in run(tasks, isolate=True))


def test_a_server_that_has_closed_its_pipes_and_is_still_seen_alive_costs_no_try(monkeypatch):
    dying = module.pool.server()
    monkeypatch.setattr(module, "TRIES", 1)
    monkeypatch.setattr(dying, "usable", dying.process.is_alive)
    monkeypatch.setattr(dying, "requests", closed_at_the_other_end())
    [outcome] = run([Task("a", 0, grown, (1,))], isolate=True)
    assert isinstance(outcome, Outcome)
    assert not dying.process.is_alive()


def closed_at_the_other_end():
    ours, theirs = multiprocessing.Pipe()
    theirs.close()
    return ours


def test_what_cannot_be_sent_runs_here_unless_there_are_limits():
    task = Task("a", 0, grown, (1,), cost=Unsendable(1.0))
    assert isinstance(run([task], isolate=True)[0], Outcome)
    [outcome] = run([task], memory_limit=2**30)
    assert outcome.kind == "error"
    assert outcome.error.startswith("cannot be sent to a process of its own: TypeError")


class Unsendable(float):
    def __reduce__(self):
        raise TypeError("not me")


def test_where_no_process_can_be_started_tasks_run_here_and_that_is_said(monkeypatch):
    def fail(*_):
        raise module.pool.CannotStart("no worker process can be started: too many")

    monkeypatch.setattr(module.pool, "Worker", fail)
    with pytest.warns(UserWarning, match="no worker process can be started: too many: tasks run in this process"):
        [outcome] = run([Task("a", 0, who, ())], isolate=True)
    assert outcome.value == {"pid": float(os.getpid())}


# ------------------------------------------------------------------------------------------------------------- joblib


@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing", "sequential"])
def test_the_callers_joblib_backend_carries_the_tasks(backend):
    tasks = [Task("a", i, grown, (i,)) for i in range(4)]
    with joblib.parallel_config(backend, n_jobs=2):
        assert [o.value["number"] for o in run(tasks)] == [0, 1, 2, 3]


def test_on_a_joblib_backend_a_task_that_kills_its_worker_fails_alone():
    tasks = [
        Task("a", 0, grown, (0,)),
        Task("killer", 0, die, (), cost=2),
        *(Task("b", i, grown, (i,)) for i in range(4)),
    ]
    with joblib.parallel_config("loky", n_jobs=2):
        outcomes = run(tasks)
    assert [type(o) for o in outcomes] == [Outcome, Failure] + [Outcome] * 4
    assert outcomes[1].error == "the process was ended by SIGKILL"


def test_on_a_joblib_backend_a_task_that_cannot_be_sent_fails_alone():
    tasks = [Task("a", i, grown, (i,)) for i in range(3)] + [Task("stuck", 0, grown, (threading.Lock(),))]
    with joblib.parallel_config("loky", n_jobs=2):
        outcomes = run(tasks)
    assert [type(o) for o in outcomes] == [Outcome] * 3 + [Failure]
    assert outcomes[3].error.startswith("cannot be sent to another process: TypeError")


def test_on_a_joblib_backend_isolated_tasks_keep_their_limits():
    with joblib.parallel_config("threading", n_jobs=2), Joblib(2, isolate=True) as engine:
        hung, other = run([Task("hung", 0, time.sleep, (1000,), limit=1.0), Task("a", 0, grown, (1,))], engine=engine)
    assert hung.kind == "timeout"
    assert other.value == {"number": 1.0}
