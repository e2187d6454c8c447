cwlVersion: v1.2
class: CommandLineTool
baseCommand: [tr, a-z, A-Z]
inputs:
  text: {type: File, streamable: true}
stdin: $(inputs.text.path)
stdout: upper.txt
outputs:
  upper: {type: stdout}
