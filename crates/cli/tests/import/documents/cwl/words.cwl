cwlVersion: v1.2
class: Workflow
inputs:
  text: File
outputs:
  count: {type: File, outputSource: second/count}
steps:
  first: {run: up.cwl, in: {text: text}, out: [upper]}
  second: {run: count.cwl, in: {text: first/upper}, out: [count]}
