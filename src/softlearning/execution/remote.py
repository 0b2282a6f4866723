"""Engines of a cluster: a Dask client, or an initialised Ray.

The table is sent once, by the engine's own means, and again when the machines that held it are lost; views are made
where they are needed and kept there. A task is pure, so one whose worker is lost is sent again: from the second time on
it has a process of its own there, so that what kills its process kills no further worker.

    driver: share -> the engine's store -> worker: a file per machine, mapped by its workers
            submit (a pickled task, names of data) -> `carried` there -> an Outcome or a Failure
"""

from __future__ import annotations

import contextlib
import io
import queue
import time
import uuid
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import cloudpickle

from softlearning.data.versions import versions
from softlearning.execution.engines import Answer, Engine, far_away, for_elsewhere
from softlearning.execution.shared import Scratch, Shared, landed, leave
from softlearning.execution.tasks import FOREVER, Failure, Job, Outcome, say

LOSSES = 20  # how often a task is sent when its worker is lost
GRACE = 5.0  # seconds after the deadline in which a worker may say that its task was ended
LOOK = 1.0  # seconds between two looks at what is under way


class Lost(Exception):
    """A worker, or data that it held, is no more."""


class Remote(Engine):
    """What both engines share: what is under way, and sending again what was lost."""

    def __init__(self, n_jobs: int | None, isolate: bool):
        super().__init__(n_jobs if n_jobs and n_jobs > 0 else FOREVER)
        self.isolate = isolate
        self.fit = uuid.uuid4().hex
        self.scratch = Scratch(shared=False, fit=self.fit)
        self.kept: dict[str, Any] = {}  # shared data by name: the driver's own
        self.sent: dict[str, Any] = {}  # the engine's references to them
        self.calls: dict[Hashable, tuple[Job, int]] = {}  # what is under way, and how often it was begun
        self.delayed: list[tuple[Job, int]] = []  # what found no worker that takes its data
        self.answers: list[Answer] = []

    def share(self, data: Any) -> Shared:
        """A handle on data, which are sent when the first task needs them."""
        handle = self.scratch.share(data)
        self.kept[handle.name] = data
        return handle

    def submit(self, job: Job, tries: int = 1) -> None:
        """Send a task and, where they are not there yet, the data that it reads."""
        try:
            pickled, names = packed((for_elsewhere(job), self.isolate or tries > 1, versions()))
            for name in names - self.sent.keys():
                self.sent[name] = self.put(self.kept[name])
        except Lost as lost:
            return self._again(job, tries, lost)
        except Exception as error:
            self.answers.append((job.position, job.task.failed("error", f"cannot be sent: {say(error)}")))
            return
        data = sorted(names)
        self.calls[self.begin(job, (pickled, self.fit, data), [self.sent[name] for name in data])] = job, tries

    def next_done(self) -> Answer:
        """Wait for a task that has ended; what was lost is sent again."""
        while not self.answers:
            delayed, self.delayed = self.delayed, []
            for job, tries in delayed:
                self.submit(job, tries)
            for call in self.ended(LOOK):
                if call in self.calls:
                    self._settle(call)
            late = [c for c, (job, _) in self.calls.items() if time.monotonic() > job.until + GRACE]
            for call in late:
                job, _ = self.calls.pop(call)
                self.stop(call)
                self.answers.append((job.position, job.task.failed("timeout", "TimeoutError: no answer in time")))
        return self.answers.pop()

    def _settle(self, call: Hashable) -> None:
        job, tries = self.calls.pop(call)
        try:
            self.answers.append((job.position, self.result(call)))
        except Lost as lost:
            self.sent = {name: ref for name, ref in self.sent.items() if self.there(ref)}
            self._again(job, tries, lost)
        except Exception as error:  # of the engine itself, such as a module that a worker does not have
            self.answers.append((job.position, job.task.failed("error", f"on its worker: {say(error)}")))

    def _again(self, job: Job, tries: int, lost: Lost) -> None:
        if tries < LOSSES:
            self.delayed.append((job, tries + 1))
        else:
            self.answers.append((job.position, job.task.failed("crash", f"lost {LOSSES} times: {lost}")))

    def cancel(self) -> None:
        """End all tasks under way."""
        for call in self.calls:
            with contextlib.suppress(Exception):
                self.stop(call)
        self.calls = {}

    # what an engine brings

    def put(self, data: Any) -> Any:
        """Send data once; a reference to them."""
        raise NotImplementedError

    def there(self, reference: Any) -> bool:
        """Whether sent data can still be had."""
        raise NotImplementedError

    def begin(self, job: Job, call: tuple, references: list) -> Hashable:
        """Begin `carried(call, *data)` on some worker."""
        raise NotImplementedError

    def ended(self, seconds: float) -> list:
        """The calls that have ended, waiting so long for one."""
        raise NotImplementedError

    def result(self, call: Any) -> Outcome | Failure:
        """What a call gave; `Lost` when its worker or its data are lost."""
        raise NotImplementedError

    def stop(self, call: Any) -> None:
        """End a call."""
        raise NotImplementedError


class Packer(cloudpickle.Pickler):
    """Pickles a task and notes the shared data that it names."""

    def __init__(self, file: io.BytesIO):
        super().__init__(file, protocol=5)
        self.names: set[str] = set()

    def persistent_id(self, part: Any) -> None:
        if isinstance(part, Shared) and part.name:
            self.names.add(part.name)


def packed(call: Any) -> tuple[bytes, set[str]]:
    """A pickled call, and the names of the shared data in it."""
    file = io.BytesIO()
    packer = Packer(file)
    packer.dump(call)
    return file.getvalue(), packer.names


def carried(call: tuple[bytes, str, list[str]], memory: int | None, *data: Any) -> Outcome | Failure:
    """One task on a worker of a cluster, with the data that it names; `memory` caps one that has no cap of its own."""
    pickled, fit, names = call
    job, isolate, expected = landed(pickled, fit, dict(zip(names, data)))
    if other := {name: (v, versions()[name]) for name, v in expected.items() if versions()[name] != v}:
        words = ", ".join(f"{name} {there} instead of {here}" for name, (here, there) in other.items())
        return job.task.failed("error", f"its worker has {words}: results would differ")
    return far_away(replace(job, memory=job.memory or memory), isolate)[1]


# --------------------------------------------------------------------------------------------------------------- Dask


class Dask(Remote):
    """The workers of a Dask cluster, as many as there are at the moment, one task per thread of theirs."""

    def __init__(self, client: Any, n_jobs: int | None = None, isolate: bool = False):
        super().__init__(n_jobs, isolate)
        self.client, self.done, self.looked, self.threads = client, queue.SimpleQueue[Any](), 0.0, 1

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        with contextlib.suppress(Exception):  # workers that go just now take their folder with them
            self.client.run(leave, self.fit, on_error="ignore")

    def capacity(self) -> int:
        """The threads of all workers, looked at once a second: an autoscaler adds and removes them."""
        if time.monotonic() > self.looked + LOOK:
            self.threads, self.looked = sum(self.client.nthreads().values()), time.monotonic()
        return int(min(self.workers, max(self.threads, 1)))

    def put(self, data: Any) -> Any:
        """Scattered to one worker, from which the others take it."""
        try:
            return self.client.scatter([data], hash=False)[0]  # a list of one: a dict or list would be taken apart
        except (TimeoutError, OSError) as error:  # no worker is there just now, or it has gone
            raise Lost(say(error)) from error

    def there(self, reference: Any) -> bool:
        """Whether a worker holds it."""
        try:
            return bool(self.client.who_has([reference]).get(reference.key))
        except Exception:  # forgotten, as data are that no worker holds any more
            return False

    def begin(self, job: Job, call: tuple, references: list) -> Hashable:
        """One task of the client."""
        name = f"softlearning-{job.task.specialist}-{job.task.fold}-{uuid.uuid4().hex}"
        future = self.client.submit(on_dask, call, *references, key=name, pure=False)
        future.add_done_callback(self.done.put)
        return future

    def ended(self, seconds: float) -> list:
        """Those whose callback was called, and those whose data are gone: they would wait for ever."""
        with contextlib.suppress(queue.Empty):
            return [self.done.get(timeout=seconds)]
        gone = any(not self.there(reference) for reference in self.sent.values())
        return [call for call in self.calls if gone or call.status in ("lost", "cancelled")]  # type: ignore[attr-defined]

    def result(self, call: Any) -> Outcome | Failure:
        """Dask itself tries a task of a dying worker four times before it says KilledWorker."""
        from concurrent.futures import CancelledError

        from distributed import KilledWorker

        if not call.done():
            self.stop(call)
            raise Lost("the data were lost with the worker that held them")
        try:
            return call.result()
        except (KilledWorker, CancelledError, OSError) as error:
            raise Lost(say(error)) from error

    def stop(self, call: Any) -> None:
        """Begun tasks are ended by their own limits: Dask ends none."""
        call.cancel(force=True)


def on_dask(call: tuple, *data: Any) -> Outcome | Failure:
    """`carried`, with this worker's own memory limit as the cap of a task in a process of its own."""
    from distributed import get_worker

    worker = get_worker()
    limit = getattr(getattr(worker, "memory_manager", None), "memory_limit", None)
    return carried(call, limit and int(limit / max(worker.state.nthreads, 1)), *data)


# ---------------------------------------------------------------------------------------------------------------- Ray


class Ray(Remote):
    """The CPUs of an initialised Ray, one per task; a memory limit is asked of Ray's own resources too."""

    def __init__(self, n_jobs: int | None = None, isolate: bool = False):
        import ray

        super().__init__(n_jobs, isolate)
        if not ray.is_initialized():
            raise ValueError('engine="ray" needs an initialised Ray: call ray.init(..) before the fit')
        self.ray, self.carried = ray, ray.remote(carried)

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        nodes = [node["NodeID"] for node in self.ray.nodes() if node["Alive"]]
        strategy = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        with contextlib.suppress(Exception):
            gone = [
                self.ray.remote(leave).options(num_cpus=0, scheduling_strategy=strategy(n, soft=True)) for n in nodes
            ]
            self.ray.wait([task.remote(self.fit) for task in gone], num_returns=len(gone), timeout=GRACE)

    def capacity(self) -> int:
        """The CPUs of the nodes that are there."""
        return int(min(self.workers, max(self.ray.cluster_resources().get("CPU", 1), 1)))

    def put(self, data: Any) -> Any:
        """In the object store of this node, from which others take it."""
        return self.ray.put(data)

    def there(self, reference: Any) -> bool:
        """Whether it can be fetched."""
        return bool(self.ray.wait([reference], timeout=0.1, fetch_local=False)[0])

    def begin(self, job: Job, call: tuple, references: list) -> Hashable:
        """One task; it is we who send it again, isolated."""
        return self.carried.options(num_cpus=1, max_retries=0, memory=job.memory).remote(call, None, *references)

    def ended(self, seconds: float) -> list:
        """As Ray says."""
        return self.ray.wait(list(self.calls), num_returns=1, timeout=seconds)[0] if self.calls else []

    def result(self, call: Any) -> Outcome | Failure:
        """What Ray's own processes die of is a loss; an exception of the task is not."""
        try:
            return self.ray.get(call)
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause from error
        except self.ray.exceptions.RayError as error:
            raise Lost(say(error)) from error

    def stop(self, call: Any) -> None:
        """Ray ends the process of the task."""
        self.ray.cancel(call, force=True)
