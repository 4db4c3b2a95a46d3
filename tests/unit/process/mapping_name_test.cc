#include "process/mapping_name.h"

#include <catch2/catch.hpp>

using namespace flamewire::process;

TEST_CASE("the meaning of mapping names") {
    CHECK(classify_mapping("/usr/bin/x") == MappingName::file);
    CHECK(classify_mapping("/memfd:runc") == MappingName::file);
    CHECK(classify_mapping("[vdso]") == MappingName::vdso);
    for (const char* name : {"", "//anon", "[heap]", "[stack]", "/SYSV00000000", "/dev/zero", "[anon:v8]",
                             "anon_inode:[perf_event]", "/anon_hugepage"})
        CHECK(classify_mapping(name) == MappingName::anonymous);
}
