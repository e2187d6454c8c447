/* Texts of the extension: JSON, and names of things. */
#include "sqlite_recording.h"

#include <string.h>

void text_begin(struct text *text, size_t limit)
{
    text->length = 0;
    text->is_cut = 0;
    text->limit = limit < sizeof text->bytes ? limit : sizeof text->bytes - 1;
    text->bytes[0] = 0;
}

static void add(struct text *text, const char *bytes, size_t length)
{
    if (text->is_cut || text->length + length > text->limit) {
        text->is_cut = 1;
        return;
    }
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = 0;
}

void text_add(struct text *text, const char *bytes)
{
    add(text, bytes, strlen(bytes));
}

void text_add_json(struct text *text, const char *bytes, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    add(text, "\"", 1);
    for (size_t at = 0; at < length; at++) {
        unsigned char byte = (unsigned char)bytes[at];
        char escaped[6] = {'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]};
        if (byte == '"' || byte == '\\') {
            escaped[1] = (char)byte;
            add(text, escaped, 2);
        } else if (byte < 32) {
            add(text, escaped, 6);
        } else {
            add(text, bytes + at, 1);
        }
    }
    add(text, "\"", 1);
}

void text_add_name(struct text *text, const char *bytes, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t at = 0; at < length; at++) {
        unsigned char byte = (unsigned char)bytes[at];
        char encoded[3] = {'%', digits[byte >> 4], digits[byte & 15]};
        if (byte < 33 || byte == 127 || strchr("%&=?#,/", byte))
            add(text, encoded, 3);
        else
            add(text, bytes + at, 1);
    }
}
