#!/bin/bash
# Runs redis-server under a load of redis-benchmark and ends it by SIGTERM.
#
#   redis.sh [PREFIX...]      for example: redis.sh fencepost record -o redis.fencepost --
#
# The server is started as PREFIX redis-server ..., listens on a free port of the loopback interface
# only, works in a folder of its own and saves nothing. Exit status: that of the prefix (of the
# server, without one), 124 if the server did not answer or stop within SECONDS_MAX. Nothing is
# left running.
set -u -m # jobs get a process group each, which is ended as a whole
seconds_max=${SECONDS_MAX:-120}
folder=$(mktemp -d)
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
server='' prefix=''

ask() { timeout 5 redis-cli -h 127.0.0.1 -p "$port" "$@" 2>>"$folder/client.log"; }

clean_up() {
  [ -n "$server" ] && kill -KILL "$server" 2>/dev/null
  [ -n "$prefix" ] && kill -KILL -- "-$prefix" 2>/dev/null
  rm -rf "$folder"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

give_up() {
  echo "redis.sh: $1" >&2
  cat "$folder/server.log" >&2
  exit 124
}

"$@" redis-server --bind 127.0.0.1 --port "$port" --dir "$folder" --save '' --appendonly no \
  --daemonize no >"$folder/server.log" 2>&1 &
prefix=$!

until [ "$(ask ping)" = PONG ]; do
  kill -0 "$prefix" 2>/dev/null || give_up "the server ended before it answered"
  [ $SECONDS -lt "$seconds_max" ] || give_up "no answer within $seconds_max s"
  sleep 0.1
done
# Asked of the server itself: the prefix may have started it as a child.
server=$(ask info server | tr -d '\r' | sed -n 's/^process_id://p')

timeout "$seconds_max" redis-benchmark -h 127.0.0.1 -p "$port" -t set,get -n 500 -q |
  tr '\r' '\n' | grep -o '^\(SET\|GET\): [0-9.]* requests per second' | cut -d: -f1

kill -TERM "$server"
while kill -0 "$prefix" 2>/dev/null; do
  [ $SECONDS -lt "$seconds_max" ] || give_up "still running after $seconds_max s"
  sleep 0.1
done
wait "$prefix"
status=$?
server='' prefix=''
exit $status
