#!/bin/bash
# Boots systemd as the first process of namespaces of its own, on a copy of this
# machine's files that keeps nothing: $1 is a folder of scratch, $2 its cgroup (v2),
# $3 the program, $4 deploy/systemd. The test enters it by nsenter.
set -euo pipefail
here=$1 root=$1/root
mount -t tmpfs none "$here"
mkdir "$here"/{upper,work,root}
mount -t overlay overlay -o lowerdir=/,upperdir="$here/upper",workdir="$here/work" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 none "$root/sys/fs/cgroup"
for dir in run tmp dev; do mount -t tmpfs none "$root/$dir"; done
mkdir "$root/dev/net"
while read -r name major minor; do
  mknod -m 666 "$root/dev/$name" c "$major" "$minor"
done <<<'null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
net/tun 10 200'
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts devpts "$root/dev/pts" -o newinstance,ptmxmode=0666
mount -t tmpfs none "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
ip link set lo up
install -D -m 755 "$3" "$root/usr/local/bin/cloudshare"
install -D -m 644 "$4/broker.yaml" "$root/etc/cloudshare/broker.yaml"
install -D -m 644 "$4/cloudshare.service" "$root/etc/systemd/system/cloudshare.service"
install -D -m 644 "$4/cloudshare.sysusers" "$root/usr/lib/sysusers.d/cloudshare.conf"
install -D -m 644 "$4/cloudshare.tmpfiles" "$root/usr/lib/tmpfiles.d/cloudshare.conf"
printf '[Unit]\nWants=systemd-journald.service\n' >"$root/etc/systemd/system/boot.target"
rm -f "$root/etc/machine-id"
echo 00000000000000000000000000000001 >"$root/etc/machine-id"
mkdir "$root/machine"
cd "$root"
pivot_root . machine
umount -l /machine
mount --make-rshared / # as a container's manager does: what systemd mounts for a service shows up in it
exec env -i container=test PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  /lib/systemd/systemd --system --unit=boot.target --show-status=no
