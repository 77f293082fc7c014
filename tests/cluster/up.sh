#!/usr/bin/env bash
# A small Slurm cluster on this machine: munge, one controller, two nodes with fake GPUs, all on 127.0.0.1, all files
# below $ROOT, no systemd, no cgroups. Installs nothing; needs the daemons slurmctld, slurmd and munged, and root.
#
#   ROOT=/tmp/x CTLPORT=16817 BASEPORT=17001 tests/cluster/up.sh     ROOT=/tmp/x tests/cluster/down.sh
set -euo pipefail
: "${ROOT:?a folder for its files}"
CTLPORT=${CTLPORT:-16817}
BASEPORT=${BASEPORT:-17001}
GPUS=2
host=$(hostname -s)
me=$(id -un)
pids=$ROOT/pids
mkdir -p "$ROOT"/{etc,log,state,spool,munge,dev}
chmod 755 "$ROOT" "$ROOT"/*
: >"$pids"

# Its own key and socket, so that it meets no other cluster.
head -c 1024 /dev/urandom >"$ROOT/munge/key"
chmod 600 "$ROOT/munge/key"
munged --force --key-file="$ROOT/munge/key" --socket="$ROOT/munge/sock" --pid-file="$ROOT/munge/pid" \
    --log-file="$ROOT/munge/log" --seed-file="$ROOT/munge/seed"
cat "$ROOT/munge/pid" >>"$pids"

cat >"$ROOT/etc/slurm.conf" <<END
ClusterName=trainwatch
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$CTLPORT
SlurmUser=$me
SlurmdUser=$me
AuthType=auth/munge
AuthInfo=socket=$ROOT/munge/sock
CredType=cred/munge
StateSaveLocation=$ROOT/state
SlurmdSpoolDir=$ROOT/spool/%n
SlurmctldPidFile=$ROOT/slurmctld.pid
SlurmdPidFile=$ROOT/slurmd-%n.pid
SlurmctldLogFile=$ROOT/log/slurmctld.log
SlurmdLogFile=$ROOT/log/slurmd-%n.log
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
MailProg=/bin/true
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=100000,batch_sched_delay=0,bf_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MinJobAge=600
KillWait=5
InactiveLimit=0
SlurmdTimeout=30
MessageTimeout=10
ReturnToService=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
AccountingStorageType=accounting_storage/none
GresTypes=gpu
SlurmdParameters=config_overrides
END
: >"$ROOT/etc/gres.conf"
for node in 1 2; do
    echo "NodeName=n$node NodeHostname=$host NodeAddr=127.0.0.1 Port=$((BASEPORT + node - 1)) CPUs=4 RealMemory=2000 Gres=gpu:fake:$GPUS State=UNKNOWN" >>"$ROOT/etc/slurm.conf"
    for gpu in $(seq 0 $((GPUS - 1))); do # CUDA_VISIBLE_DEVICES gets the number at the end of a character device
        device=$ROOT/dev/n$node-gpu$gpu
        [ -e "$device" ] || mknod "$device" c 1 3
        echo "NodeName=n$node Name=gpu Type=fake File=$device" >>"$ROOT/etc/gres.conf"
    done
done
cat >>"$ROOT/etc/slurm.conf" <<END
PartitionName=main Nodes=n[1-2] Default=YES MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=REQUEUE GraceTime=0
PartitionName=high Nodes=n[1-2] MaxTime=INFINITE State=UP PriorityTier=100 PreemptMode=OFF
END
echo "CgroupAutomount=no" >"$ROOT/etc/cgroup.conf"
export SLURM_CONF=$ROOT/etc/slurm.conf

wait_for() { # a file that is not empty
    for _ in $(seq 200); do
        [ ! -s "$1" ] || return 0
        sleep 0.05
    done
    echo "$1 did not appear" >&2
    return 1
}
listens_elsewhere() { # the ports of the cluster that other machines could reach, one a line
    awk -v ports="$*" 'BEGIN { n = split(ports, each, " "); for (i = 1; i <= n; i++) ours[sprintf("%04X", each[i])] }
        $4 == "0A" { split($2, at, ":"); if (at[2] in ours && at[1] !~ /0100007F$/) print $2 }' /proc/net/tcp /proc/net/tcp6
}
refuse_if_open() {
    [ -z "$(listens_elsewhere "$@")" ] || {
        echo "a daemon of the cluster listens on other addresses than 127.0.0.1: $(listens_elsewhere "$@" | tr '\n' ' ')" >&2
        "$(dirname "$0")/down.sh"
        exit 1
    }
}
slurmctld -c
wait_for "$ROOT/slurmctld.pid"
cat "$ROOT/slurmctld.pid" >>"$pids"
for node in n1 n2; do
    mkdir -p "$ROOT/spool/$node"
    slurmd -N "$node"
    wait_for "$ROOT/slurmd-$node.pid"
    cat "$ROOT/slurmd-$node.pid" >>"$pids"
done
for _ in $(seq 300); do
    [ "$(sinfo -h -N -p main -t idle -o %N 2>/dev/null | wc -l)" != 2 ] || {
        refuse_if_open "$CTLPORT" "$BASEPORT" "$((BASEPORT + 1))"
        exit 0
    }
    sleep 0.1
done
echo "the nodes did not become idle" >&2
tail -n 20 "$ROOT"/log/*.log >&2
exit 1
