#include <math.h>

#include "convert.h"

int main(void)
{
    return fabs(convert(1, "mile", "km") - 1.609344) > 1e-9;
}
