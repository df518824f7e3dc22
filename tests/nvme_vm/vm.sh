#!/usr/bin/env bash
# vm.sh - boot a throw-away Linux guest with emulated NVMe SSDs and run one command in it.
#
#   vm.sh deps                      apt-get install what is needed (Debian; root, or sudo)
#   vm.sh build                     fill the cache folder (kernel, modules, initramfs), about 170 MB
#   vm.sh run [options] -- CMD...   build if needed, boot, run CMD as root in the guest, return its status
#   vm.sh qmp RUNDIR JSON...        send QMP commands to a running guest; RUNDIR "guest": from inside the guest,
#                                   where this script is $VM_SH (device_del, qom-set of a throttle-group, quit, ...)
#   vm.sh clean                     drop the cache folder
#
# Options of run:
#   --nvme SPEC      add one NVMe controller (repeatable; without any: three default drives)
#                    SPEC is key=value,... with
#                      serial=S  size=1G  lbs=512|4096  ns=N (namespaces)  file=PATH (keep the data there)
#                      lat=NS (fixed latency per request; data is not kept)  nbd=unix:PATH | nbd=host:port
#                      iops= iops_rd= iops_wr= bps= bps_rd= bps_wr=  plus _max and _len for bursts
#                      eio=SECTOR[+N][/read|/write]  (512-byte sectors of the backing node that fail with EIO)
#                      speed=2_5|5|8|16 width=N  (of the root port)   queues=N   dev=k=v;k=v (device props)
#                    Drive I is QMP device nvmeI (at root port rpI), its block node nvmeI-nN-r, and, if it has any
#                    limit, its throttle-group /objects/nvmeI-nN-tg: qom-set its "limits" to change them in flight.
#   --firmware REV --model NAME   what Identify Controller tells (no QEMU property exists for them up to 10.0: a
#                    private copy of the QEMU program gets other strings; the same for all drives of the guest;
#                    at most 6 and 14 characters)
#   --share DIR      writable folder of the host, in the guest at /share and at the same path as here
#   --rundir DIR     folder for sockets, logs and drives (default: a new one under the cache; removed when
#                    the run ends, unless given)
#   --kernel 6.12|6.1    or the name of a kernel's meta package; default $VM_KERNEL or 6.12
#   --append ARGS    more kernel arguments, for example nvme.poll_queues=1
#   --modprobe 'NAME ARGS'  load a module in the guest before CMD (repeatable)
#   --icount N       virtual time: one guest instruction takes 2^N ns and idle time costs nothing, so a null_blk
#                    latency is seen exactly, whatever the host's load. One CPU; not for the emulated PCIe drives
#   --cpus N (2; with 1, NVMe I/O of QEMU 7.2 stalls now and then) --mem MiB (1024) --timeout SECONDS (300)
#   --env NAME[=VALUE]   pass a variable (repeatable)   --cwd DIR (default: the current folder)
#   --qemu 'ARGS'    more QEMU arguments (word-split)
#   --accel tcg|kvm  default tcg       --verbose     kernel messages on stderr afterwards
#
# The guest sees the host's whole root file system read-only (9p) under a tmpfs overlay, so it has the same
# python, fio and nvme-cli as the host. Status: CMD's own; 124 time-out; 125 vm.sh's own failure;
# 126 the guest went away without a status (panic, power cut).
#
# Environment: VM_CACHE, the cache folder (default: kvbench-vm in the user's cache); VM_QEMU, another QEMU;
# VM_CPU, another -cpu.
# shellcheck disable=SC2054  # commas are of QEMU's options, they separate no elements
set -Eeuo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CACHE=${VM_CACHE:-${XDG_CACHE_HOME:-${HOME:-/var/tmp}/.cache}/kvbench-vm}
QEMU=${VM_QEMU:-qemu-system-x86_64}
KERNEL=${VM_KERNEL:-6.12}

die() { echo "vm.sh: $*" >&2; exit 125; }

# ---------------------------------------------------------------- deps
APT_PACKAGES=(qemu-system-x86 busybox-static kmod cpio zstd xz-utils python3 fio nvme-cli dmsetup
    e2fsprogs btrfs-progs lvm2 mdadm cryptsetup-bin bcache-tools fdisk)   # what stands on drives

cmd_deps() {
    local missing=() p
    for p in "${APT_PACKAGES[@]}"; do
        [[ $(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null) == installed ]] || missing+=("$p")
    done
    ((${#missing[@]})) || return 0
    command -v apt-get >/dev/null || die "needs ${missing[*]}, and there is no apt-get"
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 -qq)
    ((EUID == 0)) || apt=(sudo "${apt[@]}")
    "${apt[@]}" update >&2
    "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >&2
}

need() {   # building and booting install nothing by themselves
    local missing=() tool
    for tool in "$@"; do command -v "$tool" >/dev/null || missing+=("$tool"); done
    ((!${#missing[@]})) || die "not installed: ${missing[*]} ('vm.sh deps' installs all that is needed)"
}

# ---------------------------------------------------------------- build
# Modules that the initramfs itself loads, before the host's root (and all other modules) are in reach.
BOOT_MODULES=(virtio_pci virtio_console 9p 9pnet_virtio overlay configfs nvme)

kernel_package() {   # the newest concrete kernel package behind the meta package
    local meta
    case $1 in
        6.1) meta=linux-image-amd64 ;;
        6.12) meta=linux-image-6.12-amd64 ;;
        *) meta=$1 ;;
    esac
    apt-cache show "$meta" 2>/dev/null |
        sed -n 's/^Depends:.*\(linux-image-[0-9][^ ,]*\).*/\1/p' | awk 'NR == 1'
}

extract_vmlinux() {   # bzImage -> ELF, so that QEMU enters it directly (PVH) and TCG needs not decompress it
    python3 - "$1" "$2" <<'PY'
import lzma, struct, subprocess, sys
data = open(sys.argv[1], "rb").read()
sects = data[0x1F1] or 4
off, length = struct.unpack_from("<II", data, 0x248)
start = (sects + 1) * 512 + off
payload = data[start:start + length]
if payload[:6] == b"\xfd7zXZ\x00":
    elf = lzma.LZMADecompressor(format=lzma.FORMAT_XZ).decompress(payload)
elif payload[:4] == b"\x28\xb5\x2f\xfd":
    elf = subprocess.run(["zstd", "-dcq"], input=payload[:-4], stdout=subprocess.PIPE, check=True).stdout
else:
    sys.exit("unknown kernel compression %r" % payload[:6])
if elf[:4] != b"\x7fELF":
    sys.exit("no ELF kernel inside")
open(sys.argv[2], "wb").write(elf)
PY
}

write_init() {
    cat >"$1" <<'INIT'
#!/bin/busybox sh
# PID 1 of the guest
export PATH=/bin
bb=/bin/busybox
$bb mkdir -p /proc /sys /dev /ro /rw /new
$bb mount -t proc proc /proc
$bb mount -t sysfs sysfs /sys
$bb mount -t devtmpfs dev /dev
# The nvme driver probes its devices in parallel, so their names would be different at each boot: bind them
# one by one, in the order of the root ports, that is, of the --nvme options.
echo 0 >/sys/bus/pci/drivers_autoprobe
for m in $($bb cat /modules.order); do
    case $m in nvme.ko) ;; virtio_pci.ko) echo 1 >/sys/bus/pci/drivers_autoprobe ;; esac
    n=$(echo ${m%.ko} | $bb tr - _); args=     # insmod knows nothing of NAME.PARAM=VALUE on the command line
    for w in $($bb cat /proc/cmdline); do case $w in $n.*=*) args="$args ${w#$n.}" ;; esac; done
    $bb insmod /modules/$m $args
    case $m in virtio_pci.ko) echo 0 >/sys/bus/pci/drivers_autoprobe ;; esac
done
for p in $(for d in /sys/bus/pci/devices/*; do
        [ "$($bb cat $d/class)" = 0x010802 ] && $bb readlink -f $d; done | $bb sort); do
    echo ${p##*/} >/sys/bus/pci/drivers/nvme/bind
done
echo 1 >/sys/bus/pci/drivers_autoprobe
fail() { echo "vm-init: $*" >/dev/console; $bb sleep 1; $bb poweroff -f; }
. /run.d/vars
$bb mount -t 9p -o trans=virtio,version=9p2000.L,ro,msize=262144,cache=loose hostroot /ro || fail "9p root"
$bb mount -t tmpfs -o mode=755 tmpfs /rw
$bb mkdir /rw/u /rw/w
$bb mount -t overlay -o lowerdir=/ro,upperdir=/rw/u,workdir=/rw/w overlay /new || fail overlay
for d in proc sys dev tmp run share var/tmp lib/modules; do $bb mkdir -p /new/$d; done
$bb mount -t proc proc /new/proc
$bb mount -t sysfs sysfs /new/sys
$bb mount -t devtmpfs dev /new/dev
$bb mkdir -p /new/dev/pts /new/dev/shm /new/dev/virtio-ports
$bb mount -t devpts devpts /new/dev/pts
$bb mount -t tmpfs -o mode=1777 tmpfs /new/dev/shm
$bb mount -t tmpfs -o mode=755 tmpfs /new/run
$bb mount -t configfs configfs /new/sys/kernel/config 2>/dev/null
$bb mount -t debugfs debugfs /new/sys/kernel/debug 2>/dev/null
$bb ln -sf /proc/self/fd /new/dev/fd
$bb mkdir -p /new/dev/disk/by-id       # as udev, which the guest lacks, would name them
for b in /sys/block/nvme*n*; do
    [ -e $b/device/serial ] || continue
    read -r mod <$b/device/model; read -r ser <$b/device/serial; read -r ns <$b/nsid
    id=nvme-$(echo "$mod" | $bb tr ' ' _)_$ser; [ "$ns" = 1 ] || id=${id}_$ns
    $bb ln -sf ../../${b##*/} "/new/dev/disk/by-id/$id"
done
for p in /sys/class/virtio-ports/*; do
    [ -e "$p/name" ] && $bb ln -sf ../${p##*/} /new/dev/virtio-ports/$($bb cat $p/name)
done
$bb mkdir -p "/new/lib/modules/$($bb uname -r)"
$bb mount -o bind "/ro$VM_MODULES" "/new/lib/modules/$($bb uname -r)" || fail modules
if [ -n "$VM_SHARE" ]; then
    $bb mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=none share /new/share || fail share
    $bb mkdir -p "/new$VM_SHARE"
    $bb mount -o bind /new/share "/new$VM_SHARE"
fi
$bb mkdir -p /sbin       # the kernel asks for modules (a file system, a cipher) in this root, not in the new one
printf '#!/bin/busybox sh\nexec /bin/busybox chroot /new /sbin/modprobe "$@"\n' >/sbin/modprobe
$bb chmod 755 /sbin/modprobe
$bb hostname vm
$bb ip link set lo up
$bb cp -r /run.d /new/run/vm
$bb mount -o bind /new/run/vm /new/run/vm
$bb chroot /new /bin/busybox sh -c '
    export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb
    while read -r m; do [ -n "$m" ] && modprobe $m; done </run/vm/modprobe
    set -a; . /run/vm/env; set +a
    export VM_QMP=/dev/virtio-ports/vm.qmp
    cd "$VM_CWD" 2>/dev/null || cd /
    echo start >/dev/virtio-ports/vm.rc
    bash /run/vm/cmd </dev/null >/dev/virtio-ports/vm.out 2>/dev/virtio-ports/vm.err
    echo $? >/run/vm/rc
' 2>/dev/console
$bb sync
$bb cat /new/run/vm/rc >"/new/dev/virtio-ports/vm.rc"
$bb umount /new/share 2>/dev/null
$bb poweroff -f
INIT
    chmod 755 "$1"
}

cmd_build() {
    local kdir=$CACHE/kernel-$KERNEL
    local stamp; stamp=$(sed -n '/^# -.* build$/,/^# -.* run$/p' "${BASH_SOURCE[0]}" | sha256sum | cut -c1-16)
    if [[ -f $kdir/stamp && $(<"$kdir/stamp") == "$stamp" ]]; then return 0; fi
    need busybox cpio modprobe depmod xz zstd python3 apt-get dpkg-deb
    ! ldd "$(command -v busybox)" >/dev/null 2>&1 || die "busybox is not static (apt-get install busybox-static)"
    mkdir -p "$CACHE"
    exec 9>"$CACHE/lock"; flock 9
    if [[ -f $kdir/stamp && $(<"$kdir/stamp") == "$stamp" ]]; then exec 9>&-; return 0; fi
    local pkg; pkg=$(kernel_package "$KERNEL")
    if [[ -z $pkg ]]; then apt-get -qq update >&2; pkg=$(kernel_package "$KERNEL"); fi
    [[ -n $pkg ]] || die "no kernel package for $KERNEL"
    local tmp=$CACHE/tmp-$KERNEL.$$; rm -rf "$CACHE"/tmp-"$KERNEL".*; mkdir -p "$tmp/deb" "$tmp/x" "$tmp/i"
    (cd "$tmp/deb" && apt-get -qq -o APT::Sandbox::User=root download "$pkg" >&2) || die "cannot download $pkg"
    dpkg-deb -x "$tmp"/deb/*.deb "$tmp/x"      # unpacked, never installed: /boot and grub stay as they are
    local ver; ver=$(basename "$tmp"/x/boot/vmlinuz-* | sed 's/^vmlinuz-//')
    extract_vmlinux "$tmp/x/boot/vmlinuz-$ver" "$tmp/vmlinux"
    # keep only modules that a storage test can want
    local lib=$tmp/x/lib/modules/$ver
    (cd "$lib/kernel" && find . -mindepth 1 -maxdepth 1 ! -name drivers ! -name fs ! -name lib ! -name crypto \
        ! -name block ! -name arch ! -name net -exec rm -rf {} +
     cd drivers && find . -mindepth 1 -maxdepth 1 ! -name block ! -name nvme ! -name md ! -name virtio \
        ! -name char ! -name scsi ! -name dax ! -name hwmon ! -name target ! -name net -exec rm -rf {} +
     cd net && find . -mindepth 1 -maxdepth 1 ! -name 'net_failover*' -exec rm -rf {} +
     cd ../../net && find . -mindepth 1 -maxdepth 1 ! -name 9p ! -name core -exec rm -rf {} +)
    find "$lib" -name '*.ko.xz' -print0 | xargs -0r -n 64 xz -dq
    depmod -b "$tmp/x" "$ver"
    # initramfs
    mkdir -p "$tmp/i/bin" "$tmp/i/modules"
    cp "$(command -v busybox)" "$tmp/i/bin/busybox"
    write_init "$tmp/i/init"
    local m f
    for m in "${BOOT_MODULES[@]}"; do
        modprobe -d "$tmp/x" -S "$ver" --show-depends "$m" 2>/dev/null | sed -n 's/^insmod \([^ ]*\).*/\1/p' || true
    done | awk '!seen[$0]++' | while read -r f; do
        cp "$f" "$tmp/i/modules/"; basename "$f"
    done >"$tmp/i/modules.order"
    (cd "$tmp/i" && find . | cpio -o -H newc -R 0:0 --quiet) >"$tmp/initramfs.cpio"
    mv "$lib" "$tmp/modules"; cp "$tmp/x/boot/config-$ver" "$tmp/config"
    echo "$pkg $(dpkg-deb -f "$tmp"/deb/*.deb Version)" >"$tmp/package"
    rm -rf "$tmp/x" "$tmp/i" "$tmp/deb"
    echo "$stamp" >"$tmp/stamp"
    rm -rf "$kdir"; mv "$tmp" "$kdir"
    exec 9>&-
}

# ---------------------------------------------------------------- run
FIRMWARE=()
QARGS=()
declare -A O

nvme_args() {   # index spec
    local i=$1 spec=$2 kv k v id n tg fmt=raw
    O=([serial]="SN$(printf %04d "$i")" [size]=1G [lbs]=512 [ns]=1 [speed]=8 [width]=4 [queues]=4)
    local IFS=,
    for kv in $spec; do k=${kv%%=*}; v=${kv#*=}; O[$k]=$v; done
    unset IFS
    for k in size iops{,_rd,_wr}{,_max} bps{,_rd,_wr}{,_max}; do
        [[ -n ${O[$k]:-} ]] && O[$k]=$(numfmt --from=iec "${O[$k]}")
    done
    id=${O[id]:-nvme$i}
    QARGS+=(-device "pcie-root-port,id=rp$i,bus=pcie.0,chassis=$((i + 1)),slot=$((i + 1)),x-speed=${O[speed]},x-width=${O[width]}")
    local extra=""; [[ -n ${O[dev]:-} ]] && extra=,${O[dev]//;/,}
    if ((O[ns] > 1)); then
        QARGS+=(-device "nvme-subsys,id=$id-subsys,nqn=$id")
        QARGS+=(-device "nvme,id=$id,serial=${O[serial]},bus=rp$i,subsys=$id-subsys,max_ioqpairs=${O[queues]}$extra")
    fi
    for ((n = 1; n <= O[ns]; n++)); do
        local node=$id-n$n top
        if [[ -n ${O[lat]:-} ]]; then
            QARGS+=(-blockdev "driver=null-co,node-name=$node-f,size=${O[size]},latency-ns=${O[lat]},read-zeroes=on")
            top=$node-f
        elif [[ -n ${O[nbd]:-} ]]; then
            case ${O[nbd]} in
                unix:*) QARGS+=(-blockdev "driver=nbd,node-name=$node-f,server.type=unix,server.path=${O[nbd]#unix:}") ;;
                *) QARGS+=(-blockdev "driver=nbd,node-name=$node-f,server.type=inet,server.host=${O[nbd]%:*},server.port=${O[nbd]##*:}") ;;
            esac
            top=$node-f
        else
            local file=${O[file]:-$RUN/$node.img}; [[ $n -gt 1 && -n ${O[file]:-} ]] && file=$file.$n
            [[ -e $file ]] || truncate -s "${O[size]}" "$file"
            QARGS+=(-blockdev "driver=file,node-name=$node-f,filename=$file,discard=unmap,cache.no-flush=${O[noflush]:-on}")
            top=$node-f
        fi
        if [[ -n ${O[eio]:-} ]]; then
            local e=${O[eio]} io="" first count s r="" j=0
            [[ $e == */* ]] && { io=${e#*/}; e=${e%/*}; }
            first=${e%+*}; count=1; [[ $e == *+* ]] && count=${e#*+}
            for ((s = first; s < first + count; s++, j++)); do
                r+=",inject-error.$j.event=none,inject-error.$j.errno=5,inject-error.$j.once=off,inject-error.$j.sector=$s"
                [[ -n $io ]] && r+=",inject-error.$j.iotype=$io"
            done
            QARGS+=(-blockdev "driver=blkdebug,node-name=$node-e,image=$top,discard=unmap$r"); top=$node-e
        fi
        QARGS+=(-blockdev "driver=$fmt,node-name=$node-r,file=$top,discard=unmap"); top=$node-r
        tg=""
        for k in iops iops_rd iops_wr bps bps_rd bps_wr; do
            local base=${k%%_*} dir=total
            [[ $k == *_rd ]] && dir="read"; [[ $k == *_wr ]] && dir="write"
            [[ -n ${O[$k]:-} ]] && tg+=",x-$base-$dir=${O[$k]}"
            [[ -n ${O[${k}_max]:-} ]] && tg+=",x-$base-$dir-max=${O[${k}_max]}"
            [[ -n ${O[${k}_len]:-} ]] && tg+=",x-$base-$dir-max-length=${O[${k}_len]}"
        done
        if [[ -n $tg ]]; then
            QARGS+=(-object "throttle-group,id=$node-tg$tg")
            QARGS+=(-blockdev "driver=throttle,node-name=$node-t,throttle-group=$node-tg,file=$top,discard=unmap"); top=$node-t
        fi
        local blk="logical_block_size=${O[lbs]},physical_block_size=${O[lbs]}"
        if ((O[ns] > 1)); then
            QARGS+=(-device "nvme-ns,drive=$top,bus=$id,nsid=$n,$blk")
        else
            QARGS+=(-device "nvme,id=$id,serial=${O[serial]},bus=rp$i,drive=$top,max_ioqpairs=${O[queues]},$blk$extra")
        fi
    done
}

cmd_qmp() {
    python3 - "$@" <<'PY'
import json, os, socket, sys, uuid
where, commands = sys.argv[1], sys.argv[2:]
if where == "guest":
    fd = os.open("/dev/virtio-ports/vm.qmp", os.O_RDWR)
else:
    sock = socket.socket(socket.AF_UNIX); sock.settimeout(20); sock.connect(os.path.join(where, "qmp.sock"))
    fd = sock.detach(); os.set_blocking(fd, True)
buf = b""
def call(command):
    global buf
    tag = uuid.uuid4().hex
    os.write(fd, json.dumps(dict(command, id=tag)).encode() + b"\n")
    while True:
        while b"\n" in buf:
            line, buf = buf.split(b"\n", 1)
            reply = json.loads(line)
            if reply.pop("id", None) == tag:
                return reply
        more = os.read(fd, 65536)
        if not more:
            return {"closed": True}
        buf += more
call({"execute": "qmp_capabilities"})
bad = False
for text in commands:
    reply = call(json.loads(text)); bad |= "error" in reply; print(json.dumps(reply))
sys.exit(bad)
PY
}

patched_qemu() {   # dst model firmware
    python3 - "$(command -v "$QEMU")" "$@" <<'PY'
import os, re, subprocess, sys
src, dst, model, firmware = sys.argv[1:]
data = open(src, "rb").read()
version = re.search(rb"version (\d+\.\d+\.\d+)", subprocess.check_output([src, "--version"])).group(1)
def swap(data, before, old, new):
    if len(new) > len(old):
        sys.exit("%r: at most %d characters" % (new.decode(), len(old)))
    if data.count(before + old + b"\0") != 1:
        sys.exit("this QEMU has no single string %r to replace" % (before + old))
    return data.replace(before + old + b"\0", before + new.ljust(len(old), b" ") + b"\0")
if firmware:
    data = swap(data, b"QEMU v", version, firmware.encode())
if model:
    data = swap(data, b"", b"QEMU NVMe Ctrl", model.encode())
with open(dst, "wb") as out:
    out.write(data)
os.chmod(dst, 0o755)
PY
}

QPID=
on_exit() {
    local rc=$?
    if [[ -n $QPID ]] && kill -0 "$QPID" 2>/dev/null; then kill "$QPID" 2>/dev/null || true; wait "$QPID" 2>/dev/null || true; fi
    if [[ -n ${RUN:-} && ${KEEP:-} == 0 ]]; then rm -rf "$RUN"; fi
    exit $rc
}

cmd_run() {
    local share="" append="" cpus=2 mem=1024 limit=300 accel=tcg verbose=0 cwd=$PWD model="" firmware="" specs=() envs=() mods=() more=()
    RUN="" KEEP=0
    while (($#)); do
        case $1 in
            --nvme) specs+=("$2"); shift 2 ;;
            --no-nvme) specs=(none); shift ;;
            --model) model=$2; shift 2 ;;
            --firmware) firmware=$2; shift 2 ;;
            --share) share=$(realpath "$2"); shift 2 ;;
            --rundir) mkdir -p "$2"; RUN=$(realpath "$2"); KEEP=1; shift 2 ;;
            --kernel) KERNEL=$2; shift 2 ;;
            --append) append+=" $2"; shift 2 ;;
            --modprobe) mods+=("$2"); shift 2 ;;
            --icount) cpus=1; more+=(-icount "shift=$2,sleep=off" -rtc clock=vm); shift 2 ;;
            --cpus) cpus=$2; shift 2 ;;
            --mem) mem=$2; shift 2 ;;
            --timeout) limit=$2; shift 2 ;;
            --env) envs+=("$2"); shift 2 ;;
            --cwd) cwd=$2; shift 2 ;;
            --qemu) read -ra _w <<<"$2"; more+=("${_w[@]}"); shift 2 ;;
            --accel) accel=$2; shift 2 ;;
            --verbose) verbose=1; shift ;;
            --) shift; break ;;
            *) die "unknown option $1" ;;
        esac
    done
    (($#)) || die "no command"
    need "$QEMU" cpio python3 setpriv
    cmd_build
    local kdir=$CACHE/kernel-$KERNEL
    if [[ -z $RUN ]]; then mkdir -p "$CACHE/runs"; RUN=$(mktemp -d "$CACHE/runs/XXXXXX"); fi
    [[ $RUN$share$kdir != *,* ]] || die "no comma, please, in folder names: $RUN $share $kdir"
    trap on_exit EXIT; trap 'exit 130' INT; trap 'exit 143' TERM
    rm -f "$RUN"/{rc,out,err,console.log,qmp.sock,guest-qmp.sock}

    # what to run, as a second cpio behind the first
    local d=$RUN/cpio/run.d e; rm -rf "$RUN/cpio"; mkdir -p "$d"
    printf 'VM_SHARE=%q\nVM_MODULES=%q\n' "$share" "$kdir/modules" >"$d/vars"
    { printf 'VM_CWD=%q\n' "$cwd"; printf 'VM_SHARE=/share\nVM_SH=%q\n' "$HERE/${BASH_SOURCE[0]##*/}"
      # the interpreter itself before the shims of version managers, which are slow in the guest
      printf 'PATH=%q\nLANG=C.UTF-8\n' "$(python3 -c 'import os, sys; print(os.path.dirname(sys.executable))'):$PATH"
      for e in "${envs[@]+"${envs[@]}"}"; do
          if [[ $e == *=* ]]; then printf '%s=%q\n' "${e%%=*}" "${e#*=}"; else printf '%s=%q\n' "$e" "${!e-}"; fi
      done; } >"$d/env"
    printf '%s\n' "${mods[@]+"${mods[@]}"}" >"$d/modprobe"
    if (($# == 1)); then printf '%s\n' "$1"; else printf '%q ' "$@"; echo; fi >"$d/cmd"
    cp "$kdir/initramfs.cpio" "$RUN/initrd"
    (cd "$RUN/cpio" && find . | cpio -o -H newc -R 0:0 --quiet) >>"$RUN/initrd"

    QARGS=(-nodefaults -no-user-config -display none -no-reboot -name "vm-$$"
        -machine "q35,accel=$accel,hpet=on" -smp "$cpus" -m "$mem"
        -bios qboot.rom -kernel "$kdir/vmlinux" -initrd "$RUN/initrd"
        -append "console=ttyS0 quiet loglevel=4 panic=-1 rdinit=/init mitigations=off nokaslr tsc=reliable no_timer_check random.trust_cpu=on nvme_core.io_timeout=30 nvme_core.admin_timeout=20$append"
        -serial "file:$RUN/console.log"
        -chardev "socket,id=qmp,path=$RUN/qmp.sock,server=on,wait=off" -mon "chardev=qmp,mode=control"
        -chardev "socket,id=gq,path=$RUN/guest-qmp.sock,server=on,wait=off" -mon "chardev=gq,mode=control"
        -chardev "socket,id=gqc,path=$RUN/guest-qmp.sock"
        -chardev "file,id=rc,path=$RUN/rc" -chardev "file,id=out,path=$RUN/out" -chardev "file,id=err,path=$RUN/err"
        -device virtio-serial-pci,bus=pcie.0
        -device virtserialport,chardev=out,name=vm.out -device virtserialport,chardev=err,name=vm.err
        -device virtserialport,chardev=rc,name=vm.rc -device virtserialport,chardev=gqc,name=vm.qmp
        -device virtio-rng-pci,bus=pcie.0
        -fsdev "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap"
        -device virtio-9p-pci,bus=pcie.0,fsdev=root,mount_tag=hostroot)
    case $accel in
        tcg) QARGS+=(-cpu "${VM_CPU:-Nehalem}") ;;
        kvm) QARGS+=(-cpu "${VM_CPU:-host,arch-capabilities=off}") ;;
    esac
    if [[ -n $share ]]; then
        QARGS+=(-fsdev "local,id=share,path=$share,security_model=none" -device virtio-9p-pci,bus=pcie.0,fsdev=share,mount_tag=share)
    fi
    local i=0 s
    ((${#specs[@]})) || specs=("serial=FAST0001" "serial=BLK4K0001,lbs=4096" "serial=SLOW0001,iops=500")
    [[ ${specs[0]} == none ]] && specs=()
    for s in "${specs[@]+"${specs[@]}"}"; do nvme_args $i "$s"; i=$((i + 1)); done
    QARGS+=("${more[@]+"${more[@]}"}")
    if [[ -n $model$firmware ]]; then
        patched_qemu "$RUN/qemu" "$model" "$firmware" || die "cannot set model or firmware"
        # a moved program looks for its parts beside itself
        [[ -n ${QEMU_MODULE_DIR:-} ]] || QEMU_MODULE_DIR=$(dpkg-query -S '*/accel-tcg-x86_64.so' | sed -n 's#^[^/]*\(/.*\)/accel-tcg-x86_64.so$#\1#p' | awk 'NR == 1')
        export QEMU_MODULE_DIR
        ((${#FIRMWARE[@]})) || FIRMWARE=(-L /usr/share/qemu -L /usr/share/seabios)
        QEMU=$RUN/qemu
    fi
    QARGS+=("${FIRMWARE[@]+"${FIRMWARE[@]}"}")
    printf '%q ' "$QEMU" "${QARGS[@]}" >"$RUN/cmdline"; echo >>"$RUN/cmdline"

    # A boot that fails before CMD has begun may be tried again: under TCG with several CPUs the kernel's patching
    # of its own code very rarely goes wrong ("Oops: int3").
    local try
    for ((try = 1; ; try++)); do
        boot "$limit"
        ((verbose)) && cat "$RUN/console.log" >&2
        if [[ $END == early ]] && ((try < 3)); then
            echo "vm.sh: boot $try failed: $(grep -am1 -E 'Oops|BUG|panic' "$RUN/console.log" || echo 'no reason given')" >&2
            rm -f "$RUN"/{rc,out,err,console.log,qmp.sock,guest-qmp.sock}
            continue
        fi
        break
    done
    case $END in
        status) exit "$(tail -n1 "$RUN/rc" | tr -dc 0-9)" ;;
        late) echo "vm.sh: time-out after $limit s" >&2; exit 124 ;;
    esac
    echo "vm.sh: the guest left no status ($END); QEMU: $(tail -n3 "$RUN/qemu.log")" >&2
    tail -n 20 "$RUN/console.log" >&2 2>/dev/null || true
    if [[ $END == qemu ]]; then exit 125; else exit 126; fi
}

boot() {   # limit; sets END: status, late, gone (after CMD began), early (before), qemu (it would not start)
    local limit=$1 t0=$SECONDS relay=() late=0 qrc=0 kill_at=0
    # through pipes, so that our own stdout and stderr may be files, pipes, sockets or terminals
    mkfifo "$RUN/out" "$RUN/err"
    cat "$RUN/out" & relay+=($!)
    cat "$RUN/err" >&2 & relay+=($!)
    exec 3<>"$RUN/out" 4<>"$RUN/err"       # keeps both pipes open until QEMU has gone
    setpriv --pdeathsig KILL -- "$QEMU" "${QARGS[@]}" </dev/null >"$RUN/qemu.log" 2>&1 3>&- 4>&- & QPID=$!
    echo $QPID >"$RUN/pid"
    while kill -0 "$QPID" 2>/dev/null; do
        if ((!late)); then
            if ((SECONDS - t0 >= limit)); then late=1
            elif ((SECONDS - t0 >= 90)) && [[ ! -s $RUN/rc ]]; then late=2
            fi
            if ((late)); then kill "$QPID" 2>/dev/null || true; kill_at=$((SECONDS + 5)); fi
        elif ((SECONDS >= kill_at)); then kill -9 "$QPID" 2>/dev/null || true
        fi
        sleep 0.05
    done
    wait "$QPID" 2>/dev/null || qrc=$?
    QPID=
    exec 3>&- 4>&-
    wait "${relay[@]}" 2>/dev/null || true
    if [[ -s $RUN/rc && $(tail -n1 "$RUN/rc") != start ]]; then END=status
    elif ((late == 1)); then END=late
    elif [[ -s $RUN/rc ]]; then END=gone
    elif ((late == 2 || qrc == 0)); then END=early
    else END=qemu
    fi
}

case ${1:-} in
    deps) cmd_deps ;;
    build) [[ -n ${2:-} ]] && KERNEL=$2; cmd_build ;;
    run) shift; cmd_run "$@" ;;
    qmp) shift; cmd_qmp "$@" ;;
    clean) rm -rf "$CACHE" ;;
    *) awk 'NR > 1 && !/^#/ { exit } NR > 1 { sub(/^# ?/, ""); print }' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
