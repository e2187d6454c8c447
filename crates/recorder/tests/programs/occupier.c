/* A library that is loaded at the recorder's address: the test links it there. */
int occupier = 1;
int occupied(void)
{
    return occupier;
}
