"""The drives of the guests."""

# What is asked for before the kernel would ask for it: these make the nodes that tools open.
MODULES = ("btrfs", "loop", "dm_mod", "bcache")

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

FAST_DRIVE = "serial=FAST0001,size=64M,iops_rd=600,file={folder}/fast.img"
STORE_DRIVE = "serial=STORE001,size=128M,file={folder}/store.img"

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
)


def runs(folder: str) -> tuple[str, ...]:
    """Return drives whose data is kept in a folder between boots."""
    return (FAST_DRIVE.format(folder=folder), "serial=SLOW0001,size=64M,iops_rd=300",
        "serial=BLK40001,size=64M,lbs=4096", "serial=TWONS0001,ns=2,size=64M,iops_rd=600", STORE_DRIVE.format(folder=folder))


def after(folder: str) -> tuple[str, ...]:
    """Return the drives that keep their data, in another order, behind another drive."""
    return ("serial=NEW00001,size=64M", STORE_DRIVE.format(folder=folder), FAST_DRIVE.format(folder=folder))
