/* The interface between the files of unwind_modes. */
#pragma once

void modes_leaf(void);
void modes_part(void);
