/* ClickHouse's command line, from the library libchdb. */
#include <stdio.h>

extern void *chdb_query_cmdline(int argc, char **argv);
extern const char *chdb_result_error(void *result);

int main(int argc, char **argv) {
    void *result = chdb_query_cmdline(argc, argv);
    const char *error = result ? chdb_result_error(result) : "no result";
    if (error) {
        fprintf(stderr, "%s\n", error);
    }
    return 1;
}
