# The first process of a node: gives it the folders that a machine has, and then only reaps.
#
# It runs in mount, process and network namespaces of its own, as `sh machine.sh FOLDER PAUSE`.
# What it mounts is seen nowhere else and goes with the last process of the node.
set -eu
folder=$1
pause=$2

mount --make-rshared /
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/log

# Programs write below /var/lib by names that nobody can change; here that lands in our folder.
mkdir -p "$folder/changed" "$folder/overlay"
mount -t overlay -o "lowerdir=/var/lib,upperdir=$folder/changed,workdir=$folder/overlay" overlay /var/lib
for name in containerd kubelet; do
    mkdir -p "$folder/$name" "/var/lib/$name"
    mount --bind "$folder/$name" "/var/lib/$name"
done

# The kubelet sets these for the whole kernel. It gets copies.
mkdir /run/kernel
for name in kernel/keys/root_maxbytes kernel/keys/root_maxkeys kernel/panic kernel/panic_on_oops \
    vm/overcommit_memory vm/panic_on_oom; do
    copy=/run/kernel/$(basename "$name")
    cat "/proc/sys/$name" > "$copy"
    mount --bind "$copy" "/proc/sys/$name"
done

touch "$folder/up"
exec "$pause"
