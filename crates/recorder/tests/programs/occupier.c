/* A library that is loaded where the recorder wants to be (the test links it there). */
int occupier = 1;
int occupied(void)
{
    return occupier;
}
