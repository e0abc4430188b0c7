"""Storage of files: a local directory, any fsspec location, or memory.

One rule carries every guarantee: `create` makes a file that did not exist, wholly or not at all,
and returns False if it exists already. Tables are Arrow files, which are mapped into memory, or,
for those that are seldom read, Parquet files, which take less room; the name says which. Both
end with a checksum, which is verified whenever a file is opened.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from thalweg.errors import PathError
from thalweg.store.losses import damaged, missing, told
from thalweg.store.seals import SIZE, Broken, seal_of, sealed_size

DRAFTS = "drafts"
_force = getattr(os, "fdatasync", os.fsync)
COLD = ".parquet"
"""The suffix of names of tables that are stored as Parquet."""


class Storage(Protocol):
    """The store's interface to a file system. Names are relative, with slashes."""

    def write_table(self, name: str, table: pa.Table) -> int: ...
    def read_table(self, name: str) -> pa.Table: ...
    def create(self, name: str, data: bytes) -> bool: ...
    def read(self, name: str) -> bytes: ...
    def exists(self, name: str) -> bool: ...
    def size(self, name: str) -> int: ...
    def listing(self, folder: str) -> list[str]: ...
    def delete(self, name: str) -> None: ...


def where(storage: Storage) -> str:
    """The path or URL of a storage."""
    return str(getattr(storage, "root", getattr(storage, "url", "the storage")))


def open_storage(path: str, durable: bool = True) -> Storage:
    """Storage at a path or URL; `durable` forces local files to disk before they are named."""
    if "://" in path and not path.startswith("file://"):
        return RemoteStorage(path)
    return LocalStorage(path.removeprefix("file://"), durable)


class _Steady:
    """A file that is flushed to disk as it is written, so that forcing a small file there meanwhile
    does not wait for all of a large one."""

    PIECE = 4 << 20

    def __init__(self, file: Any) -> None:
        self._file = file
        self._written = 0
        self.closed = False

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        for begin in range(0, len(view), self.PIECE):
            piece = view[begin : begin + self.PIECE]
            self._file.write(piece)
            self._written += len(piece)
            if self._written >= self.PIECE:
                self.flush()
                _force(self._file.fileno())
                self._written = 0
        return len(view)

    def flush(self) -> None:
        self._file.flush()

    def tell(self) -> int:
        return int(self._file.tell())

    def close(self) -> None:
        """Do nothing: the file is closed by its opener."""


@dataclass(frozen=True, slots=True)
class LocalStorage:
    """A directory; packs are memory-mapped, commits are hard links."""

    root: str
    durable: bool = True

    def _path(self, name: str) -> Path:
        return Path(self.root, name)

    def write_table(self, name: str, table: pa.Table) -> int:
        path = self._path(name)
        with told(self.root, name, "write"), self._opened(path) as sink:
            _write(name, table, _Steady(sink) if self.durable else sink)
            sink.flush()
            with pa.memory_map(str(path)) as written:
                sink.write(seal_of(written.read_buffer()))
            self._force(sink, path)
        return path.stat().st_size

    def _opened(self, path: Path) -> Any:
        try:
            return path.open("wb")
        except FileNotFoundError:
            self._make_folder(path.parent)
            return path.open("wb")

    def _make_folder(self, folder: Path) -> None:
        """Create a folder and those above it; names of folders survive a power failure as well."""
        if not folder.is_dir():
            self._make_folder(folder.parent)
            folder.mkdir(exist_ok=True)
            self._force_names(folder.parent)

    def _force(self, file: Any, path: Path) -> None:
        """Force a file and its name to disk."""
        if self.durable:
            file.flush()
            os.fsync(file.fileno())
            self._force_names(path.parent)

    def _force_names(self, folder: Path) -> None:
        if self.durable:
            force_names(folder)

    def read_table(self, name: str) -> pa.Table:
        with told(self.root, name, "read"), self._path(name).open("rb") as file:
            if not os.fstat(file.fileno()).st_size:
                raise damaged(self.root, name, "it is empty")
        with told(self.root, name, "read"), pa.memory_map(str(self._path(name))) as source:
            return _verified(self.root, name, source.read_buffer())

    def create(self, name: str, data: bytes) -> bool:
        path = self._path(name)
        draft = self._path(f"{DRAFTS}/{uuid.uuid4().hex}")
        with told(self.root, name, "write"):
            self._make_folder(path.parent)
            with self._opened(draft) as file:
                file.write(data)
                file.flush()
                if self.durable:
                    os.fsync(file.fileno())
            try:
                os.link(draft, path)
            except FileExistsError:
                return False
            finally:
                draft.unlink()
            self._force_names(path.parent)
        return True

    def read(self, name: str) -> bytes:
        with told(self.root, name, "read"):
            return self._path(name).read_bytes()

    def exists(self, name: str) -> bool:
        return self._path(name).exists()

    def size(self, name: str) -> int:
        with told(self.root, name, "read"):
            return self._path(name).stat().st_size

    def listing(self, folder: str) -> list[str]:
        base = self._path(folder)
        if not base.is_dir():
            return []
        return sorted(
            f"{folder}/{p.relative_to(base).as_posix()}" for p in base.rglob("*") if p.is_file()
        )

    def delete(self, name: str) -> None:
        with told(self.root, name, "delete"), contextlib.suppress(FileNotFoundError):
            self._path(name).unlink()


@dataclass(frozen=True, slots=True)
class RemoteStorage:
    """Any fsspec location. Needs exclusive creation (`xb`), which is checked when it is opened."""

    url: str

    def _fs(self) -> tuple[Any, str]:
        fs, root = fsspec.core.url_to_fs(self.url)
        return fs, root.rstrip("/")

    def _open(self, name: str, mode: str) -> Any:
        fs, root = self._fs()
        path = f"{root}/{name}"
        if "r" not in mode:
            fs.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
        return fs.open(path, mode)

    def write_table(self, name: str, table: pa.Table) -> int:
        drawn = pa.BufferOutputStream()
        _write(name, table, drawn)
        content = drawn.getvalue()
        with told(self.url, name, "write"), self._open(name, "wb") as sink:
            sink.write(content)
            sink.write(seal_of(content))
        return int(content.size) + SIZE

    def read_table(self, name: str) -> pa.Table:
        with told(self.url, name, "read"), self._open(name, "rb") as source:
            return _verified(self.url, name, pa.py_buffer(source.read()))

    def create(self, name: str, data: bytes) -> bool:
        fs, root = self._fs()
        path = f"{root}/{name}"
        fs.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
        try:
            fs.pipe_file(path, data, mode="create")
        except FileExistsError:
            return False
        except (TypeError, ValueError, NotImplementedError) as error:
            raise PathError(
                f"{self.url} cannot create a file only if it is absent",
                remedy="use a local path or an object store with conditional writes",
            ) from error
        return True

    def read(self, name: str) -> bytes:
        with told(self.url, name, "read"), self._open(name, "rb") as file:
            return bytes(file.read())

    def exists(self, name: str) -> bool:
        fs, root = self._fs()
        return bool(fs.exists(f"{root}/{name}"))

    def size(self, name: str) -> int:
        fs, root = self._fs()
        return int(fs.size(f"{root}/{name}"))

    def listing(self, folder: str) -> list[str]:
        fs, root = self._fs()
        base = f"{root}/{folder}"
        if not fs.exists(base):
            return []
        return sorted(p[len(root) + 1 :] for p in fs.find(base))

    def delete(self, name: str) -> None:
        fs, root = self._fs()
        with contextlib.suppress(FileNotFoundError):
            fs.rm_file(f"{root}/{name}")


@dataclass(slots=True)
class MemoryStorage:
    """Files in the memory of this process; for tests and the in-process runner."""

    files: dict[str, Any] = field(default_factory=dict)

    def write_table(self, name: str, table: pa.Table) -> int:
        if name.endswith(COLD):
            sink = pa.BufferOutputStream()
            _write(name, table, sink)
            self.files[name] = sink.getvalue().to_pybytes()
            return len(self.files[name])
        self.files[name] = table
        return int(table.nbytes)

    def read_table(self, name: str) -> pa.Table:
        held = self._held(name)
        return _read(name, pa.BufferReader(held)) if isinstance(held, bytes) else held

    def _held(self, name: str) -> Any:
        if name not in self.files:
            raise missing("memory", name)
        return self.files[name]

    def create(self, name: str, data: bytes) -> bool:
        if name in self.files:
            return False
        self.files[name] = data
        return True

    def read(self, name: str) -> bytes:
        return bytes(self._held(name))

    def exists(self, name: str) -> bool:
        return name in self.files

    def size(self, name: str) -> int:
        held = self._held(name)
        return len(held) if isinstance(held, bytes) else int(held.nbytes)

    def listing(self, folder: str) -> list[str]:
        return sorted(n for n in self.files if n.startswith(folder + "/"))

    def delete(self, name: str) -> None:
        self.files.pop(name, None)


def _write(name: str, table: pa.Table, sink: Any) -> None:
    if name.endswith(COLD):
        # times, and hashes in their order, differ little from one row to the next
        steady = [f.name for f in table.schema if pa.types.is_int64(f.type)]
        others = [f.name for f in table.schema if not pa.types.is_int64(f.type)]
        pq.write_table(
            table, sink, compression="zstd", use_dictionary=others,
            column_encoding=dict.fromkeys(steady, "DELTA_BINARY_PACKED") or None,
        )  # fmt: skip
        return
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def force_names(folder: str | Path) -> None:
    """Force the names in a folder to disk: files that are forced may otherwise be without one."""
    with contextlib.suppress(PermissionError):  # where folders cannot be opened, as on Windows
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _verified(root: str, name: str, whole: pa.Buffer) -> pa.Table:
    """The table in the bytes of a file; a changed file is refused before it is read."""
    try:
        return _read(name, pa.BufferReader(whole.slice(0, sealed_size(whole))))
    except (Broken, pa.ArrowException) as error:
        raise damaged(root, name, error) from error


def _read(name: str, source: Any) -> pa.Table:
    if name.endswith(COLD):
        return pq.read_table(source).combine_chunks()
    return pa.ipc.open_file(source).read_all()
