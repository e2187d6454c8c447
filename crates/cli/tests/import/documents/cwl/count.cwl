cwlVersion: v1.2
class: CommandLineTool
baseCommand: [wc, -l]
inputs:
  text: {type: File, inputBinding: {position: 1}}
stdout: count.txt
outputs:
  count: {type: stdout}
