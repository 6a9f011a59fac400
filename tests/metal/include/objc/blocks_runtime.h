// GNUstep's headers include this under -fblocks; Debian has it as Block.h.
#pragma once
#include <Block.h>
