#!/usr/bin/env bash
# Records what the commands of another release of Slurm print, for tests/fixtures/slurm: brings the cluster of up.sh up
# inside a root folder of another distribution, in mount and process namespaces of its own, and makes one job for each
# end that a job can have. Takes three minutes and needs root. All daemons listen on 127.0.0.1, and end with it.
#
#   debootstrap --variant=minbase --include=slurmctld,slurmd,slurm-client,slurm-wlm-basic-plugins,munge,slurmdbd,\
#     mariadb-server-core,mariadb-client-core,hostname,procps trixie /srv/trixie
#   tests/cluster/record.sh /srv/trixie tests/fixtures/slurm
#
# Run with Ubuntu 24.04 (23.11; --components=main,universe), Debian 13 (24.11), Ubuntu 26.04 (25.11) and Debian forky
# (26.05). Host and folders are replaced in what is kept.
set -euo pipefail
SEPARATOR=$'\x1f'
FORMAT="%A$SEPARATOR%T$SEPARATOR%r$SEPARATOR%N$SEPARATOR%V$SEPARATOR%L$SEPARATOR%k" # SQUEUE_FORMAT of answers.py
here=$(cd "$(dirname "$0")" && pwd)

inside() {
    export ROOT=/var/tmp/cluster PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
    mount -t proc proc /proc
    trap '/opt/cluster/down.sh' EXIT
    CTLPORT=16917 BASEPORT=17101 /opt/cluster/up.sh
    export SLURM_CONF=$ROOT/etc/slurm.conf
    cd /tmp
    job() { # name, options and command of sbatch: prints the number
        sbatch --parsable --job-name="$1" --comment="trainwatch:recorded:$1" -o /dev/null --open-mode=append --no-requeue "${@:2}"
    }
    state() { scontrol show job "$1" | tr ' ' '\n' | sed -n 's/^JobState=//p'; }
    reaches() { # number, states
        for _ in $(seq 240); do
            case " $2 " in *" $(state "$1") "*) return 0 ;; esac
            sleep 0.5
        done
        echo "job $1 is $(state "$1"), not $2" >&2
        return 1
    }
    completed=$(job completed --wrap true)
    failed=$(job failed --wrap 'exit 5')
    reaches "$completed" COMPLETED
    reaches "$failed" FAILED
    never=$(job never_satisfied -d "afterok:$failed" --wrap true)
    scontrol update PartitionName=high MaxNodes=1
    too_many=$(job too_many_nodes -p high -N2 --wrap true)
    sbatch -N5 --wrap true >/out/refused.txt 2>&1 || true
    held=$(job held -H --wrap true)
    requeued=$(job requeued -w n1 --wrap 'sleep 600')
    reaches "$requeued" RUNNING
    scontrol update JobId="$requeued" Requeue=1
    scontrol requeue "$requeued"
    cancelled=$(job cancelled -w n1 --wrap 'sleep 600')
    limit=$(job time_limit -w n1 --time=1 --wrap 'sleep 600')
    reaches "$cancelled" RUNNING
    reaches "$limit" RUNNING
    scancel "$cancelled"
    reaches "$cancelled" CANCELLED
    preempted=$(job preempted -w n2 --exclusive --wrap 'sleep 600')
    reaches "$preempted" RUNNING
    high=$(job high -p high -w n2 --exclusive --wrap 'sleep 600')
    reaches "$preempted" PREEMPTED
    reaches "$high" RUNNING
    reaches "$limit" TIMEOUT
    running=$(job running -w n2 -p high --time=1-00:00:00 --wrap 'sleep 600') # waits for the exclusive one
    scancel "$high"
    reaches "$running" RUNNING
    dead=$(job node_fail -w n1 --exclusive --wrap 'sleep 600')
    reaches "$dead" RUNNING
    kill -9 "$(cat "$ROOT/slurmd-n1.pid")" $(pgrep -f "slurmstepd: \[$dead\." || true)
    reaches "$dead" NODE_FAIL
    jobs="$completed $failed $never $too_many $held $requeued $cancelled $limit $preempted $running $dead"
    squeue --version | sed 's/^slurm[^ ]* //; s/^\([0-9]*\.[0-9]*\).*/\1/' >/out/version
    squeue -h -t all --me -o "$FORMAT" >/out/squeue.txt
    for number in $jobs; do scontrol show job "$number"; done >/out/scontrol.txt
    scontrol show job 999999 >/out/unknown.txt 2>&1 || true
}

if [ "${1:-}" = --inside ]; then
    inside
    exit
fi
root=$1
fixtures=$2
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
mkdir -p "$root/out" "$root/opt/cluster" "$root/var/tmp/cluster"
cp "$here"/*.sh "$root/opt/cluster/"
echo "127.0.0.1 localhost $(hostname -s)" >"$root/etc/hosts"
unshare --mount --pid --fork --kill-child bash -c '
    mount --make-rprivate /
    mount --bind "$1" "$1"
    mount --bind "$2" "$1/out"
    mount --rbind /dev "$1/dev"
    mount --rbind /sys "$1/sys"
    exec chroot "$1" bash /opt/cluster/record.sh --inside
' _ "$root" "$out"
version=$(cat "$out/version")
for made in squeue.txt scontrol.txt; do
    sed -e "s|/var/tmp/cluster|/cluster|g" -e "s|\b$(hostname -s)\b|host|g" "$out/$made" >"$fixtures/${made%.txt}-$version.txt"
done
cat "$out/unknown.txt" "$out/refused.txt"
