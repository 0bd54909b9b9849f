# Leads a process group, and ends the group when standard input is closed: when the parent closes it, exits or is
# killed. $1 is the signal that stops the program, $2 the tenths of a second that it may take, $3 a directory to remove
# (or empty). Each line on standard input is the id of the program that runs now. An empty line says that none runs.

# Signals to the group are for its other processes. The kernel sends a hangup when the parent dies while the program is
# paused.
trap '' HUP INT QUIT TERM
signal=$1 tenths=$2 scratch=$3 program=
# From here on, the parent may send signals to the group.
echo ready
exec >/dev/null 2>&1
while read -r line; do program=$line; done

# PostgreSQL's children are in groups of their own.
children() { cat "/proc/$program/task/$program/children"; }
# A program that has ended is a zombie until its parent, or whoever inherits it, has asked for its status.
runs() { kill -0 "$program" && ! grep -q '^State:.Z' "/proc/$program/status"; }

if [ -n "$program" ]; then
    kill "-$signal" "$program"
    kill -CONT "$program" $(children)
    while runs && [ "$tenths" -gt 0 ]; do
        sleep 0.1
        tenths=$((tenths - 1))
    done
    ! runs || kill -KILL "$program" $(children)
fi
[ -z "$scratch" ] || rm -rf "$scratch"
kill -KILL 0
