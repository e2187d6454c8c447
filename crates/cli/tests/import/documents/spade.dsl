type:Agent id:ann name:ann uid:1000
type:Process id:p1 pid:300 name:make command\ line:make\ -j2 cwd:/work start\ time:1433213.100
type:Process id:p2 pid:301 name:cc exe:/usr/bin/cc command\ line:cc\ -c\ tool.c cwd:/work
type:WasTriggeredBy from:p2 to:p1 operation:fork time:1433213.200
type:WasControlledBy from:p1 to:ann
type:Artifact id:a1 subtype:file path:/work/tool.c version:0
type:Artifact id:a2 subtype:file path:/work/tool.o version:1
type:Artifact id:a3 subtype:network\ socket local\ address:10.0.0.1 local\ port:1221 remote\ address:10.0.0.2 remote\ port:80
type:Artifact id:a4 filename:copy\ of\ tool.o
type:Used from:p2 to:a1 operation:read time:1433213.300
type:Used from:p2 to:a3 operation:recvfrom time:5\:56\ PM
type:WasGeneratedBy from:a2 to:p2 operation:write time:1433213.400
type:WasDerivedFrom from:a4 to:a2
type:Used from:p2 to:lost operation:read
