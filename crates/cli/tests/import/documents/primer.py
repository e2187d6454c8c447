"""PROV-JSON documents of Python's prov: the example of the PROV primer, in four forms."""
import datetime, sys
import prov.model as prov

def document():
    d = prov.ProvDocument()
    d.set_default_namespace("http://example.org/")
    d.add_namespace("foaf", "http://xmlns.com/foaf/0.1/")
    d.add_namespace("data", "file:///home/ada/")
    d.agent("derek", {"prov:type": "prov:Person", "foaf:givenName": "Derek"})
    d.entity("data:crimes.csv", {"prov:label": "Crimes"})
    d.entity("data:regions.csv")
    d.entity("composition", {"prov:location": "work/composition.csv"})
    d.entity("data:chart.png")
    d.entity("article")
    d.activity("compose", datetime.datetime(2012, 3, 31, 9, 21), datetime.datetime(2012, 3, 31, 9, 25), {"prov:label": "compose regions"})
    d.activity("illustrate")
    d.used("compose", "data:crimes.csv", datetime.datetime(2012, 3, 31, 9, 22))
    d.used("compose", "data:regions.csv")
    d.wasGeneratedBy("composition", "compose", datetime.datetime(2012, 3, 31, 9, 24))
    d.used("illustrate", "composition")
    d.wasGeneratedBy("data:chart.png", "illustrate")
    d.wasAssociatedWith("illustrate", "derek")
    d.wasDerivedFrom("article", "data:chart.png")
    d.wasAttributedTo("data:chart.png", "derek")
    b = d.bundle("later")
    b.entity("data:summary.txt")
    b.wasGeneratedBy("data:summary.txt", "summarize")
    b.wasInformedBy("summarize", "illustrate")
    return d
document().serialize(sys.argv[1])
