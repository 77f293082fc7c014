#!/usr/bin/env bash
# Ends what up.sh started below $ROOT, by pid, and what its jobs left behind.
: "${ROOT:?the folder that up.sh was given}"
export SLURM_CONF=$ROOT/etc/slurm.conf
[ -s "$ROOT/pids" ] || exit 0
timeout 5 scancel -u "$(id -un)" 2>/dev/null
sleep 1
alive() { [ -d "/proc/$1" ] && ! grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null; }
for pid in $(tac "$ROOT/pids"); do
    case "$(cat "/proc/$pid/comm" 2>/dev/null)" in slurmd* | slurmctld* | munged) kill "$pid" 2>/dev/null ;; *) continue ;; esac
    for _ in $(seq 100); do
        alive "$pid" || break
        sleep 0.1
    done
    ! alive "$pid" || kill -9 "$pid"
done
for folder in /proc/[0-9]*; do # without cgroups a child that ignores SIGTERM outlives its job
    pid=${folder#/proc/}
    variables=$({ tr '\0' '\n' <"$folder/environ"; } 2>/dev/null) || continue
    if [ "$pid" != $$ ] && grep -q '^SLURM_JOB_ID=' <<<"$variables" && grep -qx "SLURM_CONF=$SLURM_CONF" <<<"$variables"; then
        kill -9 "$pid"
    fi
done
: >"$ROOT/pids"
