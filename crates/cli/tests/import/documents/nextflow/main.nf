process LOUD {
    publishDir 'results', mode: 'copy'
    input: path text
    output: path 'loud.txt'
    script:
    """
    tr a-z A-Z < $text > loud.txt
    """
}

process COUNT {
    tag "$text"
    input: path text
    output: path '*.count'
    script:
    """
    wc -l $text > lines.count
    """
}

process FAIL {
    errorStrategy 'ignore'
    input: path text
    output: path 'never.txt'
    script:
    """
    cat $text
    exit 3
    """
}

workflow {
    COUNT(LOUD(Channel.fromPath('in.txt')))
    FAIL(Channel.fromPath('in.txt'))
}
