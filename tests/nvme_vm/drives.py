"""The drives of each guest, in the order of their names: nvme0 is the first."""

from pathlib import Path

# What is asked for before the kernel would ask for it: these make the nodes that tools open.
MODULES = ("btrfs", "loop", "dm_mod", "bcache", "nvmet")

# One drive with two ports: without multipath the kernel shows it as two drives.
DUAL_PORT = (
    "-device pcie-root-port,id=porta,bus=pcie.0,chassis=30,slot=30 "
    "-device pcie-root-port,id=portb,bus=pcie.0,chassis=31,slot=31 "
    "-device nvme-subsys,id=dual,nqn=dual "
    "-device nvme,id=dual0,serial=DUAL0001,bus=porta,subsys=dual "
    "-device nvme,id=dual1,serial=DUAL0001,bus=portb,subsys=dual "
    "-blockdev driver=file,node-name=dualf,filename={file},discard=unmap,cache.no-flush=on "
    "-blockdev driver=raw,node-name=dualr,file=dualf,discard=unmap "
    "-device nvme-ns,drive=dualr,bus=dual0,nsid=1,shared=on"
)

REFUSALS = (
    "serial=SAFE0001,size=48M",
    "serial=PAIR0001,size=48M",
    "serial=TWONS0001,ns=2,size=32M",
)

FAULTS = (
    "serial=GOOD0001,size=64M,iops_rd=800",
    "serial=BAD0001,size=16M,eio=16384+512/read",
    "serial=GONE0001,size=64M",
    "serial=DEAD0001,size=64M",
    "serial=BETW0001,size=64M",
    "serial=RESET0001,size=64M",
    "serial=PREP0001,ns=2,size=32M",
    "serial=OTHR0001,size=32M",
)


def runs(folder: Path) -> tuple[str, ...]:
    """Return healthy drives; a throttle decides how fast a read is, whatever this machine does."""
    return (
        _fast(folder),
        "serial=SLOW0001,size=64M,iops_rd=300",
        "serial=BLK40001,size=64M,lbs=4096",
        "serial=TWONS0001,ns=2,size=64M,iops_rd=600",
        _store(folder),
        "serial=CLIFF001,size=128M,bps_wr=6M,bps_wr_max=30M,bps_wr_len=4",
    )


def after(folder: Path) -> tuple[str, ...]:
    """Return the drives that keep their data, in another order, behind another drive."""
    return ("serial=NEW00001,size=64M", _store(folder), _fast(folder), _integrity(folder))


def verified(folder: Path) -> tuple[str, ...]:
    """Return the drives that keep their data, in a third order, before another drive."""
    return (_integrity(folder), _fast(folder), _store(folder), "serial=OTHER001,size=16M")


def _fast(folder: Path) -> str:
    return f"serial=FAST0001,size=64M,iops_rd=600,file={folder / 'fast.img'}"


def _store(folder: Path) -> str:
    return f"serial=STORE001,size=128M,file={folder / 'store.img'}"


def _integrity(folder: Path) -> str:
    return f"serial=INTG0001,size=16M,file={folder / 'integrity.img'}"
