#!/usr/bin/env python3
"""Links on a kernel that has what this machine's may lack: netem and WireGuard.

Boots Debian's kernel in QEMU, with this machine's files and one emulated processor whose time is exact, and races there over links with delay, jitter, loss,
rate and a tunnel. What deadheat measured of each link is held against what was asked for.

  scripts/kernel.py                  all of it, in about five minutes; what it makes is in target/kernel
  scripts/kernel.py inside TARGET    what the emulated machine runs

Exit status: 0 if each link is as asked for, 1 if one is not, 2 if a program is missing.
"""
import json
import math
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The same inside, where no variable says so.
TARGET = Path(sys.argv[2] if len(sys.argv) > 2 else os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
WORK = TARGET / "kernel"
DEADHEAT = TARGET / "debug" / "deadheat"
SERVER = TARGET / "debug" / "deadheat-test-server"
PROGRAMS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "cpio": "cpio",
    "modprobe": "kmod",
    "apt-get": "apt",
    "wg": "wireguard-tools",
}
# What mounts the files of this machine.
MODULES = ["virtio_pci", "9p", "9pnet_virtio", "overlay", "virtio_rng"]
LINKS = {
    "delayed": 'delay = "10ms"',
    "jittery": 'delay = "5ms", jitter = "1ms"',
    "lossy": 'loss = "0.5%"',
    "slow": 'rate = "20mbit"',
    "all": 'rate = "20mbit", delay = "5ms", jitter = "1ms", loss = "0.5%"',
    "private": 'delay = "2ms", tunnel = "wireguard"',
}
PASSED = "kernel: every link is as asked for"
INIT = """#!/bin/busybox sh
cd / && for one in proc:proc sysfs:sys devtmpfs:dev; do busybox mount -t ${one%:*} none /${one#*:}; done
while read -r module; do busybox insmod /modules/$module; done < /order
busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro files /files
busybox mount -t tmpfs -o size=2g none /changes && busybox mkdir /changes/upper /changes/work
busybox mount -t overlay -o lowerdir=/files,upperdir=/changes/upper,workdir=/changes/work none /root
for one in proc sys dev; do busybox mount --move /$one /root/$one; done
exec busybox switch_root /root /usr/bin/env python3 SELF inside TARGET
"""


def run(*words, **options):
    return subprocess.run(words, check=True, **options)


def kernel():
    """The newest kernel of Debian: its file and its modules."""
    WORK.mkdir(parents=True, exist_ok=True)
    if not list(WORK.glob("boot/vmlinuz-*")):
        told = run("apt-cache", "depends", "linux-image-amd64", capture_output=True, text=True).stdout
        package = next(line.split()[-1] for line in told.splitlines() if "Depends: linux-image" in line)
        run("apt-get", "download", "-qq", package, cwd=WORK)
        package = next(WORK.glob("*.deb"))
        run("dpkg", "-x", package, WORK / "unpacked")
        package.unlink()
        # The kernel's file comes last: if it is there, so is the rest.
        shutil.rmtree(WORK / "lib", ignore_errors=True)
        for name in ("lib", "boot"):
            (WORK / "unpacked" / name).rename(WORK / name)
    image = next(WORK.glob("boot/vmlinuz-*"))
    run("depmod", "-b", WORK, image.name.removeprefix("vmlinuz-"))
    return image, image.name.removeprefix("vmlinuz-")


def first_files(version):
    """The files with which the kernel begins: a shell, and the modules that mount the others."""
    folder = WORK / "first"
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("bin", "modules", "proc", "sys", "dev", "files", "changes", "root"):
        (folder / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), folder / "bin" / "busybox")
    order = []
    for module in MODULES:
        told = run("modprobe", "-S", version, "-d", WORK, "--show-depends", module, capture_output=True, text=True)
        paths = [line.split()[1] for line in told.stdout.splitlines() if line.startswith("insmod")]
        order += [path for path in paths if path not in order]
    for path in order:
        shutil.copy(path, folder / "modules")
    (folder / "order").write_text("".join(f"{Path(path).name}\n" for path in order))
    (folder / "init").write_text(INIT.replace("SELF", str(Path(__file__).resolve())).replace("TARGET", str(TARGET)))
    (folder / "init").chmod(0o755)
    archive = WORK / "first.cpio"
    with archive.open("wb") as out:
        names = "\n".join(str(path.relative_to(folder)) for path in folder.rglob("*"))
        run("cpio", "--create", "--format=newc", "--quiet", cwd=folder, input=names.encode(), stdout=out)
    return archive


def outside():
    missing = [package for program, package in PROGRAMS.items() if not shutil.which(program)]
    if missing:
        print(f"kernel: install first: apt-get install {' '.join(missing)}", file=sys.stderr)
        return 2
    # With the tests' lints, so that nothing is compiled twice.
    os.environ["RUSTC_WORKSPACE_WRAPPER"] = "clippy-driver"
    run("cargo", "build", "--workspace", "--locked", "--quiet", cwd=ROOT)
    image, version = kernel()
    emulated = subprocess.run(
        ["qemu-system-x86_64", "-accel", "tcg,thread=single", "-icount", "shift=3,sleep=off", "-cpu", "max", "-m", "4096",
         "-nographic", "-no-reboot", "-kernel", image, "-initrd", first_files(version),
         "-append", "console=ttyS0 quiet panic=-1 mitigations=off", "-device", "virtio-rng-pci",
         "-virtfs", "local,path=/,mount_tag=files,security_model=none,readonly=on,multidevs=remap"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=1800, check=False)
    (WORK / "console").write_text(emulated.stdout)
    lines = [line for line in emulated.stdout.splitlines() if line.startswith("kernel: ")]
    print("\n".join(lines) or f"kernel: it did not start; see {WORK / 'console'}")
    return 0 if PASSED in lines else 1


def inside():
    """Runs as the first process of the emulated machine."""
    os.environ.update(PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", HOME="/root")
    try:
        for kind, place in (("tmpfs", "/run"), ("cgroup2", "/sys/fs/cgroup"), ("tmpfs", "/tmp")):
            run("mount", "-t", kind, "none", place)
        run("ip", "link", "set", "lo", "up")
        Path("/lib/modules").mkdir(exist_ok=True)
        release = os.uname().release
        Path("/lib/modules", release).symlink_to(WORK / "lib" / "modules" / release)
        for module in ("sch_netem", "sch_tbf", "wireguard", "veth"):
            run("modprobe", module)
        print(f"kernel: Linux {release}", flush=True)
        bad = [name for name in LINKS if not race(name)]
        print(f"kernel: not as asked for: {', '.join(bad)}" if bad else PASSED, flush=True)
    except Exception as error:  # Whatever it is, the machine must end, and say so.
        print(f"kernel: {error}", flush=True)
    finally:
        Path("/proc/sysrq-trigger").write_text("o")
        time.sleep(60)


def race(name):
    """Races over one link. Whether what deadheat measured of it is what was asked for."""
    command = f"{SERVER} --host {{host}} --port {{port}} --json"
    contenders = "".join(f'[[contender]]\nname = "{one}"\ncommand = "{command}"\n' for one in "ab")
    folder = Path("/tmp", name)
    folder.mkdir()
    scenario = f'[[scenario]]\nname = "{name}"\nconnections = 4\nlink = {{ {LINKS[name]} }}\n'
    (folder / "study.toml").write_text(f'{contenders}[[probe]]\npath = "/x"\n{scenario}')
    words = "race . --epochs 3 --cpu-latency any --warmup 20ms --measure 300ms --ready-timeout 100s --json r.json --record r.jsonl"
    ended = subprocess.run([DEADHEAT, *words.split()], cwd=folder, capture_output=True, text=True, check=False)
    if not (folder / "r.json").exists():
        print(f"kernel: {name}: exit status {ended.returncode}: {ended.stderr}", flush=True)
        return False
    document = json.loads((folder / "r.json").read_text())
    asked = document["record"]["plan"]["scenarios"][0]["link"]
    seen = document["record"]["links"][0]
    wrong, told = [], []
    on_the_way_ms = (seen["round_trip_ns"] - seen["plain_round_trip_ns"]) / 2e6
    asked_ms = asked.get("delay_ns", 0) / 1e6
    # The mean of so many round trips, each of two packets, differs by chance if they jitter.
    by_chance_ms = 3 * asked.get("jitter_ns", 0) / 1e6 / math.sqrt(2 * seen["round_trips"])
    if asked_ms:
        told.append(f"{on_the_way_ms:.3f} ms on the way, {asked_ms:g} asked for")
    if abs(on_the_way_ms - asked_ms) > 0.1 + by_chance_ms:
        wrong.append(f"delay off by {on_the_way_ms - asked_ms:.3f} ms")
    for rate in seen.get("rate_bits_per_s") or []:
        told.append(f"{rate / 1e6:.2f} Mbit/s of {asked['rate_bits_per_s'] / 1e6:g}")
        if abs(rate / asked["rate_bits_per_s"] - 1) > 0.02:
            wrong.append(f"{rate} bits/s")
    share = asked.get("loss", 0)
    for sent, lost in zip(seen["sent"], seen["lost"]):
        if share:
            told.append(f"{lost} of {sent} lost, {share * sent:g} asked for")
        if abs(lost - share * sent) > 4 * math.sqrt(sent * share * (1 - share)):
            wrong.append(f"{lost} of {sent} packets lost")
    if "tunnel" in asked:
        told.append(f"encrypted by {seen.get('tunnel')}")
        if seen.get("tunnel") != "the kernel":
            wrong.append("the tunnel is not the kernel's")
    codes = {one["code"] for one in document["scenarios"][0]["findings"]}
    wrong += sorted(codes & {"link-differs", "foreign-cpu", "dropped-rounds"})
    if any(one["completions"] == 0 for epoch in document["record"]["epochs"] for one in epoch["contenders"]):
        wrong.append("a contender did not answer")
    print(f"kernel: {name}: {'; '.join(told)}{'. WRONG: ' + '; '.join(wrong) if wrong else ''}", flush=True)
    return not wrong


if __name__ == "__main__":
    sys.exit(inside() if sys.argv[1:2] == ["inside"] else outside())
