#!/usr/bin/env python3
"""Load from a real Kubernetes cluster of three nodes on this machine: `make kubernetes-test`. Needs root, Go and some 10 minutes the first time.

The cluster runs in network namespaces that are made here and removed at the end, with containerd, runc and network plugins from Debian's packages, which are unpacked
and not installed. Everything is below target/kubernetes. Nodes have mount, UTS and PID namespaces of their own, and no setting of the machine is changed. Control groups
must be of version 1.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import hashlib
import io

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
HOME = TARGET / "kubernetes"
RUN = HOME / "run"
VERSION = "v1.34.4"
NODES = (1, 2, 3)
CONTROL, SERVER = "10.99.0.1", "10.99.0.100"
GROUPS = ["cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids", "systemd"]
PACKAGES = ["containerd", "runc", "containernetworking-plugins", "libseccomp2"]
IMAGE = "localhost/deadheat:test"


def run(*command, **options):
    return subprocess.run([str(one) for one in command], check=True, **options)


def inside(namespace, *command):
    return ["nsenter", f"--net=/run/netns/dhk-{namespace}", *[str(one) for one in command]]


def wait_for(what, seconds, holds):
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            raise SystemExit(f"kubernetes-test: {what} did not happen within {seconds} s; logs are in {RUN}/log")
        time.sleep(0.1)


# ------------------------------------------------------------------------------------------------ what is built


def build():
    HOME.mkdir(parents=True, exist_ok=True)
    cluster = HOME / "cluster"
    if not cluster.exists():
        of = "k8s.io/component-base/version"
        flags = f"-s -w -X {of}.gitVersion={VERSION} -X {of}.gitMajor=1 -X {of}.gitMinor=34"
        print("building the cluster's program: some 10 minutes of CPU time")
        run("go", "build", "-buildvcs=false", "-trimpath", "-ldflags", flags, "-o", cluster, ".",
            cwd=ROOT / "kubernetes/test/cluster", env={**os.environ, "CGO_ENABLED": "0"})
    packages = HOME / "packages"
    if not (packages / "usr/bin/containerd").exists():
        packages.mkdir(exist_ok=True)
        run("apt-get", "download", "-q", *PACKAGES, cwd=packages)
        for package in packages.glob("*.deb"):
            run("dpkg", "-x", package, packages)
    run("cargo", "build", "--workspace", "--locked", "--quiet", "--features", "kubernetes", "--bin", "deadheat", cwd=ROOT)
    program = HOME / "deadheat"
    shutil.copy(TARGET / "debug/deadheat", program)
    libraries = [line.split("=>")[-1].split()[0] for line in
                 run("ldd", program, capture_output=True, text=True).stdout.splitlines() if "/" in line]
    files = {"deadheat": program, **{library.lstrip("/"): library for library in libraries}}
    image(HOME / "deadheat.tar", IMAGE, files, ["/deadheat"])
    # The container that holds a pod's namespaces needs a program that waits.
    image(HOME / "pause.tar", "localhost/pause:1", files, ["/deadheat", "null", "--port", "0"])


def image(path, name, files, entrypoint):
    """A container image of these files."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for inner, outer in files.items():
            data = pathlib.Path(outer).read_bytes()
            entry = tarfile.TarInfo(inner)
            entry.size, entry.mode = len(data), 0o755
            tar.addfile(entry, io.BytesIO(data))
    layer = layer.getvalue()
    digest = "sha256:" + hashlib.sha256(layer).hexdigest()
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {"Entrypoint": entrypoint},
                         "rootfs": {"type": "layers", "diff_ids": [digest]}}).encode()
    config_name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [name], "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(path, "w") as tar:
        for inner, data in ((config_name, config), ("layer.tar", layer), ("manifest.json", manifest)):
            entry = tarfile.TarInfo(inner)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


# ------------------------------------------------------------------------------------------------- the cluster

started = []


def start(name, command, **options):
    log = open(RUN / f"log/{name}.log", "w")
    process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True, **options)
    started.append(process)
    return process


def networks():
    """A switch and the hosts on it: control plane, server, nodes. Pods of node I have the addresses 10.244.I.0/24."""
    run("ip", "netns", "add", "dhk-sw")
    run("ip", "-n", "dhk-sw", "link", "add", "br0", "type", "bridge")
    run("ip", "-n", "dhk-sw", "link", "set", "br0", "up")
    for name, address in [("c", CONTROL), ("t", SERVER), *((str(i), f"10.99.0.1{i}") for i in NODES)]:
        space = f"dhk-{name}"
        run("ip", "netns", "add", space)
        run("ip", "link", "add", f"dhk-v{name}", "netns", space, "type", "veth", "peer", "name", f"dhk-p{name}", "netns", "dhk-sw")
        run("ip", "-n", "dhk-sw", "link", "set", f"dhk-p{name}", "master", "br0", "up")
        run("ip", "-n", space, "addr", "add", f"{address}/24", "dev", f"dhk-v{name}")
        run("ip", "-n", space, "link", "set", f"dhk-v{name}", "up")
        run("ip", "-n", space, "link", "set", "lo", "up")
        for i in NODES:
            if name != str(i):
                run("ip", "-n", space, "route", "add", f"10.244.{i}.0/24", "via", f"10.99.0.1{i}")


def control_plane():
    pki, cluster = RUN / "pki", HOME / "cluster"
    pki.mkdir()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": pki}
    run("openssl", "genrsa", "-out", "sa.key", "2048", **quiet)
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.crt", "-days", "3", "-subj", "/CN=ca", **quiet)
    run("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-keyout", "api.key", "-out", "api.csr", "-subj", "/CN=api", **quiet)
    (pki / "names").write_text(f"subjectAltName=IP:{CONTROL},IP:10.96.0.1,DNS:kubernetes.default.svc\n")
    run("openssl", "x509", "-req", "-in", "api.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "3",
        "-out", "api.crt", "-extfile", "names", **quiet)
    (pki / "tokens").write_text("admin,admin,u1,system:masters\nload-tester,load-tester,u2\nnobody,nobody,u3\n")
    for user in ("admin", "load-tester", "nobody"):
        (RUN / f"{user}.kubeconfig").write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "c", "cluster": {"server": f"https://{CONTROL}:6443", "certificate-authority": f"{pki}/ca.crt"}}],
            "users": [{"name": "u", "user": {"token": user}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}]}))
    url, admin = f"http://{CONTROL}:2379", f"--kubeconfig={RUN}/admin.kubeconfig"
    start("etcd", inside("c", cluster, "etcd", "--data-dir", RUN / "etcd", "--listen-client-urls", url, "--advertise-client-urls", url,
                         "--listen-peer-urls", f"http://{CONTROL}:2380", "--initial-advertise-peer-urls", f"http://{CONTROL}:2380",
                         "--initial-cluster", f"default=http://{CONTROL}:2380", "--unsafe-no-fsync", "--log-level", "warn"))
    start("api", inside("c", cluster, "kube-apiserver", f"--etcd-servers={url}", f"--bind-address={CONTROL}", f"--advertise-address={CONTROL}",
                        "--secure-port=6443", f"--tls-cert-file={pki}/api.crt", f"--tls-private-key-file={pki}/api.key",
                        "--service-cluster-ip-range=10.96.0.0/24", "--service-account-issuer=https://kubernetes.default.svc",
                        f"--service-account-key-file={pki}/sa.key", f"--service-account-signing-key-file={pki}/sa.key",
                        "--authorization-mode=RBAC", f"--token-auth-file={pki}/tokens", "--allow-privileged=true",
                        "--kubelet-preferred-address-types=InternalIP"))
    wait_for("an answer of the API server", 60, lambda: ask("GET", "/readyz", text=True) == "ok")
    start("manager", inside("c", cluster, "kube-controller-manager", admin, f"--service-account-private-key-file={pki}/sa.key",
                            f"--root-ca-file={pki}/ca.crt", "--leader-elect=false", "--bind-address=127.0.0.1"))
    start("scheduler", inside("c", cluster, "kube-scheduler", admin, "--leader-elect=false", "--bind-address=127.0.0.1"))


def ask(method, path, body=None, text=False):
    """One request to the API server, as its administrator."""
    command = inside("c", "curl", "-s", "--cacert", RUN / "pki/ca.crt", "-H", "authorization: Bearer admin", "-X", method,
                     "-H", "content-type: application/yaml", "-H", "accept: application/json", f"https://{CONTROL}:6443{path}")
    if body is not None:
        command += ["--data-binary", body]
    answer = subprocess.run(command, capture_output=True, text=True).stdout
    return answer if text else json.loads(answer)


def node(i):
    home = RUN / f"node{i}"
    for folder in ("containerd", "run", "kubelet", "cni/net.d", "kernel"):
        (home / folder).mkdir(parents=True)
    packages = HOME / "packages"
    (home / "containerd.toml").write_text(f'''
version = 2
root = "{home}/containerd"
state = "{home}/run"
oom_score = 0
[grpc]
  address = "{home}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{packages}/usr/lib/cni"
    conf_dir = "{home}/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "{packages}/usr/sbin/runc"
''')
    (home / "cni/net.d/10-pods.conflist").write_text(json.dumps({"cniVersion": "0.4.0", "name": "pods", "plugins": [
        {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": False, "ipam": {
            "type": "host-local", "dataDir": f"{home}/cni/ipam", "ranges": [[{"subnet": f"10.244.{i}.0/24"}]],
            "routes": [{"dst": "0.0.0.0/0"}]}}]}))
    (home / "kubelet.yaml").write_text(json.dumps({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "address": f"10.99.0.1{i}",
        "healthzBindAddress": "127.0.0.1", "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"}, "podLogsDir": f"{home}/logs", "cgroupDriver": "cgroupfs", "cgroupRoot": f"/dhk{i}",
        "failCgroupV1": False, "failSwapOn": False, "enforceNodeAllocatable": [], "protectKernelDefaults": True,
        "makeIPTablesUtilChains": False, "localStorageCapacityIsolation": False, "maxOpenFiles": 20000,
        "containerRuntimeEndpoint": f"unix://{home}/containerd.sock", "evictionHard": {"memory.available": "100Mi"},
        "imageGCHighThresholdPercent": 100, "nodeStatusUpdateFrequency": "2s"}))
    # The kubelet wants these settings. It reads and writes stand-ins and not those of the machine.
    settings = {"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1"}
    binds = ""
    for name, value in settings.items():
        stand_in = home / "kernel" / name.replace("/", "-")
        stand_in.write_text(value + "\n")
        binds += f"mount --bind {stand_in} /proc/sys/{name}\n"
    for group in GROUPS:
        folder = pathlib.Path(f"/sys/fs/cgroup/{group}/dhk{i}")
        folder.mkdir(exist_ok=True)
        if group == "cpuset":
            for file in ("cpuset.cpus", "cpuset.mems"):
                (folder / file).write_text((folder.parent / file).read_text())
    ctr = f"{packages}/usr/bin/ctr -a {home}/containerd.sock"
    (home / "init.sh").write_text(f'''
export PATH={packages}/usr/bin:{packages}/usr/sbin:$PATH LD_LIBRARY_PATH={packages}/usr/lib/x86_64-linux-gnu
hostname host{i}
mount --make-rprivate / && mount --make-shared /
{binds}
containerd -c {home}/containerd.toml > {RUN}/log/containerd{i}.log 2>&1 &
for _ in $(seq 1 100); do {ctr} version > /dev/null 2>&1 && break; sleep 0.1; done
for image in deadheat pause; do {ctr} -n k8s.io images import {HOME}/$image.tar; done
exec {HOME}/cluster kubelet --kubeconfig {RUN}/admin.kubeconfig --config {home}/kubelet.yaml --hostname-override host{i} \\
  --node-ip 10.99.0.1{i} --root-dir {home}/kubelet --cert-dir {home}/pki --v=2
''')
    start(f"node{i}", inside(i, "unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", home / "init.sh"))


def ready_nodes():
    def is_ready(one):
        return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in one["status"].get("conditions", []))
    return sum(is_ready(one) for one in ask("GET", "/api/v1/nodes").get("items", []))


def end():
    """Removes everything that was made."""
    for process in reversed(started):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
    time.sleep(1)
    for i in NODES:
        # Also where the container runtime made one beside those of version 1.
        for folder in pathlib.Path("/sys/fs/cgroup").glob(f"*/dhk{i}"):
            for below in sorted(folder.rglob("*/"), reverse=True):
                below.rmdir()
            folder.rmdir()
    spaces = subprocess.run(["ip", "netns"], capture_output=True, text=True).stdout
    for line in spaces.splitlines():
        if line.startswith("dhk-"):
            run("ip", "netns", "del", line.split()[0])
    shutil.rmtree(RUN, ignore_errors=True)


# --------------------------------------------------------------------------------------------------- what is tested

ANSWERS = """
import asyncio
async def serve(reader, writer):
    try:
        while True:
            await reader.readuntil(b"\\r\\n\\r\\n")
            writer.write(b"HTTP/1.1 200 OK\\r\\ncontent-length: 2\\r\\n\\r\\nok")
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "%s", 8080)
    await server.serve_forever()
asyncio.run(main())
"""


def load(*more, user="load-tester", image=IMAGE, workers=3, seconds=3):
    command = inside("c", HOME / "deadheat", "load", "-c", "30", "-r", "600", "-d", f"{seconds}s", "--load-kubernetes", "load", "--load-workers", workers,
                     "--image", image, "--worker-cpu", "200m", "--allow-target", SERVER, "--json", RUN / "out.json", *more, f"http://{SERVER}:8080/")
    return subprocess.Popen(command, env={**os.environ, "KUBECONFIG": f"{RUN}/{user}.kubeconfig"}, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def finished(name, process, status, *words):
    said = process.communicate(timeout=180)[0]
    print(f"--- {name}: exit status {process.returncode}\n{said}")
    for word in words:
        assert word in said, f"{name}: {word!r} was not said"
    assert process.returncode in status, f"{name}: exit status {process.returncode}"
    return json.loads((RUN / "out.json").read_text()) if (RUN / "out.json").stat().st_size else None


def nothing_left(name, seconds):
    jobs = lambda: ask("GET", "/apis/batch/v1/namespaces/load/jobs")["items"] + ask("GET", "/api/v1/namespaces/load/pods")["items"]
    begun = time.monotonic()
    wait_for(f"{name}: the end of Job and pods", seconds, lambda: not jobs())
    print(f"{name}: Job and pods were gone after {time.monotonic() - begun:.1f} s")


def pods():
    return ask("GET", "/api/v1/namespaces/load/pods")["items"]


def running(count):
    return lambda: sum(pod["status"].get("phase") == "Running" for pod in pods()) == count


def tests():
    begun = time.monotonic()
    process = load()
    first = None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if first is None and line.startswith("loading "):
            first = time.monotonic() - begun
    process.wait()
    print("--- three workers\n" + "".join(lines))
    record = json.loads((RUN / "out.json").read_text())
    assert process.returncode in (0, 3), process.returncode
    assert len(record["hosts"]) == 3 and record["outcomes"]["ok"] == record["requests"] > 0
    assert sorted(host["name"] for host in record["hosts"]) == [f"pod {n} on host{h}" for n, h in
                                                               sorted((int(host["name"].split()[1]), int(host["name"][-1])) for host in record["hosts"])]
    assert len({host["name"].split()[-1] for host in record["hosts"]}) == 3, "one pod on each node"
    print(f"command to first slice: {first:.1f} s; start skew: {record['start_skew_ns'] / 1e6:.2f} ms")
    nothing_left("three workers", 40)

    process = load(seconds=120)
    wait_for("three running pods", 60, running(3))
    time.sleep(5)
    pod = pods()[0]
    agent = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
             if cmdline(pid) == b"/deadheat\0agent\0"][0]
    os.kill(agent, signal.SIGKILL)
    record = finished("an agent is killed", process, (3,), "was lost: its container was killed by signal 9")
    assert record["findings"][0]["code"] == "host-lost" and pod
    nothing_left("an agent is killed", 40)

    process = load(seconds=120)
    wait_for("three running pods", 60, running(3))
    time.sleep(5)
    process.kill()
    process.wait()
    nothing_left("deadheat is killed", 120)

    finished("no permission", load(user="nobody"), (2,), "create jobs, delete jobs, list pods, get pods/attach", "access.yaml")
    finished("no image", load(image="localhost/none:1"), (2,), "the image localhost/none:1 cannot be pulled")
    nothing_left("no image", 40)
    finished("no room", load("--worker-memory", "900Gi", "--ready-timeout", "3s"), (2,), "no node takes pod")
    nothing_left("no room", 40)


def cmdline(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def main():
    build()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    end()
    (RUN / "log").mkdir(parents=True)
    try:
        networks()
        control_plane()
        for i in NODES:
            node(i)
        wait_for("three ready nodes", 120, lambda: ready_nodes() == 3)
        for part in (ROOT / "kubernetes/access.yaml").read_text().split("\n---\n"):
            kind = part.split("kind: ")[1].split()[0]
            path = {"Namespace": "/api/v1/namespaces", "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/load/roles",
                    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/load/rolebindings"}[kind]
            wait_for(f"{kind}", 10, lambda: ask("POST", path, part).get("kind") == kind)
        wait_for("a service account", 30, lambda: "metadata" in ask("GET", "/api/v1/namespaces/load/serviceaccounts/default"))
        start("server", inside("t", sys.executable, "-c", ANSWERS % SERVER))
        tests()
    finally:
        if "--keep-logs" in sys.argv:
            shutil.copytree(RUN / "log", HOME / "log", dirs_exist_ok=True)
        end()
    print("kubernetes-test: passed")


main()
