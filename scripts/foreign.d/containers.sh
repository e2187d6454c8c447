# what: runc runs a container made of one static program, as root and rootless
# needs: busybox runc
# limit: 90
# of: rootfs/made rootfs/in
mkdir -p rootfs/bin rootfs/proc rootfs/dev rootfs/sys; cp "$(command -v busybox)" rootfs/bin/busybox; ln -s busybox rootfs/bin/sh; echo data >rootfs/in
runc spec $([ "$(id -u)" = 0 ] || echo --rootless)
python3 - <<'PY'
import json
c = json.load(open("config.json"))
c["process"]["terminal"] = False
c["process"]["args"] = ["/bin/sh", "-c", "busybox cat /in >/made; echo inside; busybox ls /; exit 3"]
c["root"] = {"path": "rootfs", "readonly": False}
c["process"].pop("rlimits", None)
json.dump(c, open("config.json", "w"))
PY
timeout $((60 * FOREIGN_PATIENCE)) runc --root "$HOME/runc" run "c$$" </dev/null 2>"$HOME/why"; echo $?; cat rootfs/made; rm -rf config.json rootfs/bin
