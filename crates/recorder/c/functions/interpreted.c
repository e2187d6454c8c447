/*
 * Takes the marks of interpreters that cannot call the recorder's functions: Node and R. A mark is
 * the look-up of a path at which nothing can be, so it fails with ENOTDIR. It is not logged.
 *
 *     /dev/null/backstory/function/NUMBER/WHERE/NAME   describes a function
 *     /dev/null/backstory/call/NUMBER                  it is called
 *     /dev/null/backstory/return/NUMBER                it returns
 *
 * NUMBER is decimal and has the highest bit. WHERE has no slash.
 */
#include "functions.h"

enum { WHERE_MAX = 256 };

/* The number at the begin of the text, which is left behind it. 0: it does not begin with one. */
static u32 number_of(const char **text)
{
    u64 number = 0;
    for (u32 digits = 0; digits < 10 && **text >= '0' && **text <= '9'; digits++)
        number = number * 10 + (u64)(*(*text)++ - '0');
    return number >> 32 || !(number & BS_FUNCTION_INTERPRETED) ? 0 : (u32)number;
}

/* The text behind a word, or null. */
static const char *behind(const char *text, const char *word)
{
    if (!bs_starts(text, word))
        return 0;
    while (*word++)
        text++;
    return text;
}

static void describe(u32 number, const char *text)
{
    char where[WHERE_MAX];
    u32 length = 0;
    while (*text && *text != '/' && length < WHERE_MAX - 1)
        where[length++] = *text++;
    where[length] = 0;
    if (*text == '/')
        backstory_function(number, text + 1, where);
}

/* True if the readable path is a mark. */
BS_COLD bool bs_mark_function(const char *path)
{
    const char *text = behind(path, "/dev/null/backstory/");
    if (!text)
        return false;
    const char *call = behind(text, "call/"), *left = behind(text, "return/"),
               *function = behind(text, "function/");
    text = call ? call : left ? left : function;
    u32 number = text ? number_of(&text) : 0;
    if (!number)
        return false;
    if (call)
        backstory_call(number);
    else if (left)
        backstory_return(number);
    else if (*text == '/')
        describe(number, text + 1);
    return true;
}
