"""Real Redis or Valkey servers for tests: a single server, a cluster of three primaries with a replica each, and a primary with a
replica that three sentinels watch. Each kind can also speak only TLS."""
import contextlib
import signal
import socket
import subprocess

import harness
import live

# The most seconds for any step of a group: a slow machine is no failure.
PATIENCE_SECONDS = 120
# The slot of the tag {limited-login}.
SLOT = 16139
NODE_PASSWORD = "a-password-of-nodes"
SENTINEL_PASSWORD = "a-password-of-sentinels"


class Refused(OSError):
    """An error that a server answers."""


def wait_for(holds, what):
    if not harness.until(holds, PATIENCE_SECONDS):
        raise RuntimeError(f"never: {what}")


class Security:
    """An authority, a certificate for localhost alone, and one for another name."""

    def __init__(self):
        self.folder = harness.Folder()
        authority = harness.Authority(self.folder)
        for file, name in (("good", "localhost"), ("other", "other.example")):
            authority.issue(file, f"DNS:{name}")
        self.authorities, self.context = authority.file, authority.context()
        # A test also asks servers with a wrong name.
        self.context.check_hostname = False

    def files(self, name):
        """The settings of a server with one of the certificates."""
        return {"tls-cert-file": self.folder.path / f"{name}.pem", "tls-key-file": self.folder.path / f"{name}.key"}

    def settings(self, port):
        """The settings of a server that speaks only TLS, also with other servers."""
        return {"port": 0, "tls-port": port, "tls-replication": "yes", "tls-auth-clients": "no",
                "tls-ca-cert-file": self.authorities} | self.files("good")


class Node:
    """One server process with a folder of its own, which stays when the server is started again."""

    def __init__(self, port, *options, password=None, security=None):
        self.folder = harness.Folder()
        self.port, self.options, self.password, self.security = port, options, password, security
        self.process = None

    def settings(self):
        return self.security.settings(self.port) if self.security else {"port": self.port}

    def start(self):
        self.process = subprocess.Popen(
            [live.REDIS_PROGRAM, *self.arguments()], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        wait_for(lambda: self.ask("PING") == "PONG", f"{self.port} answers")

    def arguments(self):
        passwords = ["--requirepass", self.password, "--masterauth", self.password] if self.password else []
        settings = [word for name, value in self.settings().items() for word in (f"--{name}", str(value))]
        return [*settings, "--bind", "127.0.0.1", "--dir", str(self.folder.path), "--save", "",
                "--repl-diskless-sync-delay", "0", *passwords, *self.options]

    def connect(self):
        plain = socket.create_connection(("127.0.0.1", self.port), 5)
        return self.security.context.wrap_socket(plain) if self.security else plain

    def show(self, name):
        """Makes new connections see another certificate."""
        self.ask("CONFIG", "SET", *[word for setting in self.security.files(name).items() for word in setting])

    def ask(self, *words):
        """The answer to one command."""
        with self.connect() as client, client.makefile("rwb") as stream:
            if self.password:
                self.exchange(stream, ["AUTH", self.password])
            return self.exchange(stream, words)

    def exchange(self, stream, words):
        parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        stream.write(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
        stream.flush()
        return self.read(stream)

    def read(self, stream):
        line = stream.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server ended the connection")
        kind, text = line[:1], line[1:-2].decode()
        if kind == b"-":
            raise Refused(text)
        if kind in b"+:":
            return text
        if int(text) < 0:
            return None
        if kind == b"*":
            return [self.read(stream) for _ in range(int(text))]
        return stream.read(int(text) + 2)[:-2].decode(errors="replace")

    def role(self):
        return self.ask("ROLE")[0]

    def is_synchronised(self):
        role = self.ask("ROLE")
        return role[0] == "slave" and role[3] == "connected"

    def cut_off_replicas(self):
        """Takes the right to replicate from the server's replicas, and ends their connections."""
        self.ask("ACL", "SETUSER", "default", "-psync", "-sync")
        self.ask("CLIENT", "KILL", "TYPE", "replica")

    def hang(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        if self.process:
            self.go_on()
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self):
        self.kill()
        self.folder.__exit__()


def started(*options):
    """Starts a server that belongs to no group."""
    node = Node(harness.free_port(), *options)
    node.start()
    return node


class Cluster:
    """Three primaries with a replica each; every node may become a primary."""

    node_timeout_ms = 2000
    password, sentinels = None, ()
    # Every replica of the service has found a new owner after this time.
    discovery_seconds = 2

    def __init__(self, security=None):
        ports = harness.free_ports(12)
        self.security = security
        options = ["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--appendonly", "no",
                   "--cluster-node-timeout", str(self.node_timeout_ms), "--cluster-replica-validity-factor", "0",
                   "--cluster-allow-replica-migration", "no", *(["--tls-cluster", "yes"] if security else [])]
        self.nodes = [Node(port, *options, "--cluster-port", str(bus), security=security)
                      for port, bus in zip(ports[:6], ports[6:])]
        try:
            self.make(ports[6:])
        except BaseException:
            self.stop()
            raise

    def make(self, buses):
        for node in self.nodes:
            node.start()
        primaries, replicas = self.nodes[:3], self.nodes[3:]
        for index, node in enumerate(primaries):
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", index + 1)
            node.ask("CLUSTER", "ADDSLOTSRANGE", index * 16384 // 3, (index + 1) * 16384 // 3 - 1)
        for node, bus in zip(self.nodes[1:], buses[1:]):
            self.nodes[0].ask("CLUSTER", "MEET", "127.0.0.1", node.port, bus)
        for node in self.nodes:
            wait_for(lambda node=node: "cluster_known_nodes:6" in node.ask("CLUSTER", "INFO"), "all nodes know all")
        for primary, replica in zip(primaries, replicas):
            name = primary.ask("CLUSTER", "MYID")
            wait_for(lambda name=name, replica=replica: replica.ask("CLUSTER", "REPLICATE", name) == "OK", "a replica")
        self.wait_until_whole()

    def url(self, host=None):
        return place_list("cluster", self.security, self.nodes[:2], host)

    def wait_until_whole(self):
        """Waits until the cluster serves all slots and each primary has its replica."""
        for node in self.nodes:
            wait_for(lambda node=node: "cluster_state:ok" in node.ask("CLUSTER", "INFO"), "the cluster serves")
            wait_for(lambda node=node: node.role() == "master" or node.is_synchronised(), "the replicas follow")
        wait_for(lambda: sum(node.role() == "master" for node in self.nodes) == 3, "three primaries")

    def owner(self):
        """The primary of the keys, by its own map."""
        found = [node for node in self.nodes if node.process and self.owns(node)]
        return found[0] if len(found) == 1 else None

    def owns(self, node):
        with contextlib.suppress(OSError):
            for first, last, primary, *_ in node.ask("CLUSTER", "SLOTS"):
                if int(first) <= SLOT <= int(last):
                    return int(primary[1]) == node.port and node.role() == "master"
        return False

    def replicas(self, primary):
        """The replicas that follow a primary."""
        return [node for node in self.nodes
                if node.process and (role := node.ask("ROLE"))[0] == "slave" and int(role[2]) == primary.port]

    def primaries(self):
        return [node for node in self.nodes if node.process and node.role() == "master"]

    def move_places(self):
        """The owner of the keys, and another primary."""
        source = self.owner()
        return source, next(node for node in self.primaries() if node is not source)

    def replace(self, *options):
        """Orders a replica to replace the owner of the keys."""
        successor = self.replicas(self.owner())[0]
        successor.ask("CLUSTER", "FAILOVER", *options)
        wait_for(lambda: self.owner() is successor, "the replica takes over")

    def begin_move(self, source, target):
        target.ask("CLUSTER", "SETSLOT", SLOT, "IMPORTING", source.ask("CLUSTER", "MYID"))
        source.ask("CLUSTER", "SETSLOT", SLOT, "MIGRATING", target.ask("CLUSTER", "MYID"))

    def move_keys(self, source, target, count):
        """Moves some keys; False if there was none."""
        keys = source.ask("CLUSTER", "GETKEYSINSLOT", SLOT, count)
        if keys:
            source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
        return bool(keys)

    def cancel_move(self, source, target):
        """Cancels the move. The slot stays, without the keys that the target has."""
        for node in (source, target):
            node.ask("CLUSTER", "SETSLOT", SLOT, "STABLE")
        target.ask("FLUSHALL")

    def end_move(self, source, target):
        name = target.ask("CLUSTER", "MYID")
        while True:
            while self.move_keys(source, target, 100):
                pass
            target.ask("CLUSTER", "SETSLOT", SLOT, "NODE", name)
            try:
                source.ask("CLUSTER", "SETSLOT", SLOT, "NODE", name)
                break
            except Refused:
                # A new key arrived meanwhile.
                continue
        wait_for(lambda: self.owner() is target, "the slot has moved")

    def stop(self):
        for node in self.nodes:
            node.stop()


def place_list(kind, security, nodes, host):
    """The address of a store. The certificates are for localhost, so with TLS a numeric address is a wrong name."""
    host = host or ("localhost" if security else "127.0.0.1")
    return f"redis{'s' if security else ''}+{kind}://" + ",".join(f"{host}:{node.port}" for node in nodes)


class Sentinel(Node):
    """One sentinel, with a file of its own, because it writes there."""

    def __init__(self, port, primary, security):
        super().__init__(port, password=SENTINEL_PASSWORD, security=security)
        settings = "".join(f"{name} {value}\n" for name, value in self.settings().items())
        self.file = self.folder.write("sentinel.conf", f"""{settings}bind 127.0.0.1
dir {self.folder.path}
requirepass {SENTINEL_PASSWORD}
sentinel sentinel-pass {SENTINEL_PASSWORD}
sentinel monitor main 127.0.0.1 {primary} 2
sentinel auth-pass main {NODE_PASSWORD}
sentinel down-after-milliseconds main 1000
sentinel failover-timeout main 4000
""")

    def arguments(self):
        return [self.file, "--sentinel"]


class Watched:
    """A primary with replicas, and three sentinels; passwords for both."""

    password = NODE_PASSWORD
    # Each replica of the service looks at the sentinels every 3 s.
    discovery_seconds = 6

    def __init__(self, security=None, replicas=1):
        ports = harness.free_ports(4 + replicas)
        self.security = security
        self.nodes = [Node(port, "--appendonly", "no", password=NODE_PASSWORD, security=security) for port in ports[3:]]
        self.sentinels = [Sentinel(port, ports[3], security) for port in ports[:3]]
        try:
            for node in self.nodes:
                node.start()
            for node in self.nodes[1:]:
                node.ask("REPLICAOF", "127.0.0.1", ports[3])
                wait_for(node.is_synchronised, "the replica follows")
            for sentinel in self.sentinels:
                sentinel.start()
            self.wait_until_whole()
        except BaseException:
            self.stop()
            raise

    def url(self, host=None):
        return place_list("sentinel", self.security, self.sentinels, host) + "/main"

    def told(self, sentinel):
        """The primary that a sentinel names."""
        port = int(sentinel.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main")[1])
        return next(node for node in self.nodes if node.port == port)

    def wait_until_whole(self):
        for sentinel in self.sentinels:
            wait_for(lambda sentinel=sentinel: len(sentinel.ask("SENTINEL", "SENTINELS", "main")) == 2, "three sentinels")
            wait_for(lambda sentinel=sentinel: len(sentinel.ask("SENTINEL", "REPLICAS", "main")) == len(self.nodes) - 1, "known replicas")
            wait_for(lambda sentinel=sentinel: "OK" in sentinel.ask("SENTINEL", "CKQUORUM", "main"), "a quorum")
        wait_for(lambda: self.owner() is not None and len(self.replicas(self.owner())) == len(self.nodes) - 1, "the replicas follow")

    def replace(self):
        """Orders the sentinels to replace the primary."""
        former = self.owner()

        def is_done():
            # On a busy machine the sentinels may give up.
            self.sentinels[0].ask("SENTINEL", "FAILOVER", "main")
            return harness.until(lambda: self.told(self.sentinels[0]) is not former, 10)
        wait_for(is_done, "the replica takes over")

    def owner(self):
        """The primary that all sentinels name, if it has that role itself."""
        with contextlib.suppress(OSError):
            told = {self.told(sentinel) for sentinel in self.sentinels}
            if len(told) == 1 and (node := told.pop()).process and node.role() == "master":
                return node
        return None

    def replicas(self, primary):
        return [node for node in self.nodes if node is not primary and node.process and node.is_synchronised()]

    def stop(self):
        for node in [*self.nodes, *self.sentinels]:
            node.stop()
